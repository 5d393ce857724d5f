"""The checks, in the order in which they run. docs/quality.md says what each shows and what it came to."""

import collections
import json
import os

from lab import at_least, at_most, mean, near

FAST, FULL = "fast", "full"
HERE = os.path.dirname(os.path.abspath(__file__))
Check = collections.namedtuple("Check", "name tiers data about function")
CHECKS = []


def check(about, *tiers, data=None, name=None):
    """Makes a check of function(lab, tier). `data` is the data set that it needs."""
    def add(function):
        CHECKS.append(Check(name or function.__name__, tiers, data, about, function))
        return function
    return add


# Checks that need no training.

@check("DLRM's own example, by losses and weights", FAST, FULL)
def dlrm_golden(lab, _):
    lab.bazel_test("DlrmGoldenTest passes", "//nn_worker/graph:graph_test", "DlrmGoldenTest.*")


@check("parameters of the zoo, against published counts", FAST, FULL)
def parameters(lab, _):
    lab.bazel_test("zoo_test passes", "//nn_worker/zoo:zoo_test", "*")


# The demo: a synthetic log whose Bayes AUC is known.

def judge_demo(lab, least_gap_closed, *sets):
    lr = lab.train("demo_lr")["test.auc"]
    report = lab.train("demo", *sets)
    bayes = report["bayes_auc"]
    lab.judge("gap from LR to Bayes closed", (report["test.auc"] - lr) / (bayes - lr),
              at_least(least_gap_closed))
    lab.judge("Bayes AUC", bayes, near(.8, .05))
    lab.judge("LR test AUC", lr, at_most(bayes - .05))
    lab.judge("rows", report["rows"], at_least(50000))


@check("DeepFM between LR and the best AUC that there is", FAST, FULL)
def demo(lab, _):
    judge_demo(lab, .60)


@check("the same with 4,000,000 samples", FULL)
def demo_4m(lab, _):
    judge_demo(lab, .65, "data.synthetic.train_samples=4000000")


@check("rates that fall over the last tenth: the calibration of one checkpoint", FULL)
def cool_down(lab, _):
    steps = 1000000 // 1024
    falling = [f"{side}.learning_rate_schedule.cool_down.{field}"
               for side in ("tables[0]", "dense_optimizer")
               for field in (f"total_steps={steps}", "share=0.1")]
    for seed in (1, 2, 3):
        report = lab.train("demo", *falling, seed=seed)
        lab.judge("calibration of the test set", report["test.calibration"], near(1, .03))
        constant = lab.train("demo", seed=seed)
        lab.judge("test AUC against a constant rate's", report["test.auc"] - constant["test.auc"],
                  at_least(-.001))


# Kind and learning rate of docs/optimizers.md.
SPARSE_OPTIMIZERS = {
    "sgd": 1, "momentum": .1, "nesterov": .1, "sgd_l1": 1, "adagrad": .02, "decayed_adagrad": .01,
    "rowwise_adagrad": .02, "rmsprop": .001, "adadelta": 1, "adam": .001, "amsgrad": .001,
    "adamw": .001, "ftrl": .05, "ftml": .0025,
}
DENSE_OPTIMIZERS = {
    "sgd": .1, "momentum": .01, "nesterov": .01, "adagrad": .01, "rmsprop": .001, "adadelta": 1,
    "adam": .001, "amsgrad": .001, "adamw": .001, "ftrl": .05, "ftml": .0025,
}


@check("every optimizer trains the demo's shape at its default rate", FULL)
def optimizers(lab, _):
    few = "data.synthetic.train_samples=200000"
    lr = lab.train("demo_lr", few)["test.auc"]
    lab.show("LR test AUC", lr)
    for kind, rate in SPARSE_OPTIMIZERS.items():
        sets = [f"tables[0].segments[{segment}].optimizer.{field}"
                for segment in (0, 1) for field in (f"learning_rate={rate}", f"{kind}=")]
        lab.judge(f"tables by {kind}, rate {rate}", lab.train("demo", few, *sets)["test.auc"],
                  at_least(lr))
    for kind, rate in DENSE_OPTIMIZERS.items():
        sets = [f"dense_optimizer.{field}" for field in (f"learning_rate={rate}", f"{kind}=")]
        lab.judge(f"dense network by {kind}, rate {rate}",
                  lab.train("demo", few, *sets)["test.auc"], at_least(lr))


CLIP_OFF = "tables[name=features].segments[name=embedding].cow_clip.floor=1e9"
# The warm-up belongs to CowClip.
PLAIN = (CLIP_OFF, "batch_scaling.dense_warmup_samples=0")


@check("a batch of 2,048 with rates for 128, under each rule", FULL)
def cowclip(lab, _):
    def auc(*sets):
        return mean([lab.train("cowclip", *sets, seed=seed)["test.auc"] for seed in (1, 2, 3)])

    # Every rule has the same rates here. What differs is the clip, and CowClip's warm-up.
    lab.show("batch 128, mean test AUC",
             auc("batch_scaling.rule=NO_SCALING", "global_batch_size=128", *PLAIN))
    lab.show("batch 128, rule COWCLIP, mean test AUC", auc("global_batch_size=128"))
    others = {}
    for rule in ("NO_SCALING", "SQRT", "LINEAR"):
        others[rule] = auc(f"batch_scaling.rule={rule}", *PLAIN)
        lab.show(f"batch 2048, rule {rule}, mean test AUC", others[rule])
    lab.show("batch 2048, rates of COWCLIP, no clip, mean test AUC", auc(CLIP_OFF))
    clipped = auc()
    lab.judge("batch 2048, rule COWCLIP, mean test AUC", clipped,
              at_least(max(max(others.values()) - .001, others["LINEAR"] + .01)))


# Adult.

def adult_means(lab, what, *sets):
    aucs = [lab.train("adult_persia", *sets, seed=seed, data="adult")["test.auc"]
            for seed in range(1, 6)]
    lab.judge(f"{what}: mean test AUC", mean(aucs), near(.8929, .003))
    return aucs


@check("PERSIA's example: the same with 1, 2 and 4 NN workers", FULL, data="adult")
def adult(lab, _):
    one = adult_means(lab, "1 NN worker")
    for workers in (2, 4):
        aucs = adult_means(lab, f"{workers} NN workers", f"nn_worker.replicas={workers}")
        lab.judge(f"{workers} NN workers: most that a seed differs",
                  max(abs(a - b) for a, b in zip(aucs, one)), at_most(.001))


@check("PERSIA's example on the kernels of a card, which the CPU runs", FAST, FULL, data="adult")
def adult_host(lab, _):
    cpu = lab.train("adult_persia", data="adult")["test.auc"]
    host = lab.train("adult_persia", "nn_worker.device=HOST", data="adult")["test.auc"]
    lab.judge("test AUC against the CPU's", host - cpu, near(0, .002))


@check("PERSIA's example in hybrid mode", FULL, data="adult")
def adult_hybrid(lab, _):
    adult_means(lab, "hybrid", "mode=HYBRID", "reproducible=false")


@check("a factorization machine with a correct encoder", FAST, FULL, data="adult")
def adult_fm(lab, _):
    lab.judge("test AUC", lab.train("adult_fm", data="adult")["test.auc"], at_least(.912))


@check("two tasks, each against its own model", FAST, FULL, data="adult")
def adult_tasks(lab, _):
    tasks = ("income", "never_married")
    both = lab.train("adult_tasks", data="adult")
    for task, other in zip(tasks, reversed(tasks)):
        # The other task's loss has almost no weight.
        alone = lab.train("adult_tasks", f"model.tasks[name={other}].weight=1e-9", data="adult")
        lab.judge(f"{task}: test AUC", both[f"test.tasks.{task}.auc"],
                  near(alone[f"test.tasks.{task}.auc"], .003))


# Frappe by BARS' protocol. `least` is the lower limit of the best validation AUC.

def frappe(model, least, tiers=(FULL,), seeds=(1,)):
    @check("best validation AUC by BARS' protocol", *tiers, data="frappe", name=f"frappe_{model}")
    def run(lab, tier):
        chosen = seeds if tier == FULL else seeds[:1]
        aucs = [lab.train(f"frappe_{model}", seed=seed, data="frappe")["valid.auc"]
                for seed in chosen]
        for seed, auc in zip(chosen, aucs):
            if len(aucs) > 1:
                lab.show(f"seed {seed}", auc)
        lab.judge("best validation AUC" + (", mean" if len(aucs) > 1 else ""), mean(aucs),
                  at_least(least))


frappe("lr", .937, tiers=(FAST, FULL))
frappe("fm", .969, tiers=(FAST, FULL), seeds=(1, 2, 3))
frappe("ffm", .9775)
frappe("nfm", .979)
frappe("dcn", .983)
frappe("dcnv2", .983)
frappe("deepfm", .9837, seeds=(1, 2, 3))
frappe("xdeepfm", .9835)
frappe("autoint_plus", .9838)


@check("DeepFM on Frappe in 16 bits, against 32", FULL, data="frappe")
def frappe_16_bits(lab, _):
    def auc(precision):
        return mean([lab.train("frappe_deepfm", f"nn_worker.precision={precision}", seed=seed,
                               data="frappe")["valid.auc"] for seed in (1, 2, 3)])

    exact = auc("F32")
    lab.show("F32, mean best validation AUC", exact)
    for precision, most in (("BF16", .001), ("F16", .002)):
        lab.judge(f"{precision}, mean less that of F32", auc(precision) - exact, near(0, most))


# Other data sets.

@check("best validation AUC with the ids of users and films", FULL, data="ml1m")
def ml1m_fm(lab, _):
    lab.judge("best validation AUC", lab.train("ml1m_fm", data="ml1m")["valid.auc"], at_least(.87))


@check("matrix factorisation of ratings, a tenth held out", FAST, FULL, data="ml100k")
def ml100k_svd(lab, _):
    lab.judge("test RMSE", lab.train("ml100k_svd", data="ml100k")["test.rmse"], at_most(.95))


def judge_gowalla(lab, job, least, *sets):
    seed = 1
    output = lab.run([os.path.join(HERE, "gowalla.sh"), lab.satrap_text,
                      os.path.join(lab.data, "gowalla"), lab.work, job, str(seed), *sets], seed)
    recall = {row["ranking"]: row["recall"]
              for row in json.loads(output)["rankings"] if row["k"] == 20}
    for ranking, value in recall.items():
        if ranking == "vectors" and least:
            lab.judge("Recall@20", value, at_least(least))
        else:
            lab.show(f"Recall@20 by {ranking}", value)


@check("retrieval by sampled softmax of 1,000", FULL, data="gowalla")
def gowalla_youtubednn(lab, _):
    judge_gowalla(lab, "gowalla_youtubednn", .145)


@check("retrieval by in-batch softmax", FULL, data="gowalla")
def gowalla_two_tower(lab, _):
    judge_gowalla(lab, "gowalla_two_tower", .145)


@check("retrieval by NCE, without a gate", FULL, data="gowalla")
def gowalla_nce(lab, _):
    judge_gowalla(lab, "gowalla_youtubednn", None, "--set", "model.tasks[name=next].loss=NCE")


@check("Criteo's format, undamaged and with bad lines", FULL, data="criteo_10k")
def criteo(lab, _):
    report = lab.train("criteo_deepfm", data="criteo_10k")
    lab.judge("test AUC of some 1,000 rows", report["test.auc"], at_least(.6))
    lab.judge("quarantined", report["quarantined"], near(0, 0))
    dlrm = lab.train("criteo_dlrm", data="criteo_10k")
    lab.judge("DLRM, test AUC", dlrm["test.auc"], at_least(.6))
    damaged = os.path.join(lab.work, "damaged")
    os.makedirs(damaged, exist_ok=True)
    with open(os.path.join(lab.data, "criteo_10k", "train.txt"), "rb") as file:
        lines = [damage(line, i // 20) if i % 20 == 0 else line for i, line in enumerate(file, 1)]
    with open(os.path.join(damaged, "train.txt"), "wb") as file:
        file.writelines(lines)
    report = lab.train("criteo_deepfm", f"data_root={damaged}")
    lab.judge("quarantined of 500 damaged lines", report["quarantined"], near(500, 0))


def damage(line, way):
    """A bad record, in one of ten ways that take turns."""
    fields = line.rstrip(b"\n").split(b"\t")
    way %= 10
    if way == 0:
        fields.pop()
    elif way == 1:
        fields.append(b"extra")
    elif way == 9:
        fields = [b"no record at all"]
    else:
        column, text = {2: (3, b"abc"), 3: (20, b"a\0b"), 4: (0, b"2"), 5: (0, b""), 6: (0, b"-1"),
                        7: (30, b"x" * (1 << 20)), 8: (5, b"12-")}[way]
        fields[column] = text
    return b"\t".join(fields) + b"\n"


@check("the saved model of a reproducible run, for any number of replicas", FULL)
def bits(lab, _):
    digests = {
        lab.train("demo", "mode=SYNC", "reproducible=true", "lanes=2",
                  "data.synthetic.train_samples=60000", replicas)["model_digest"]
        for replicas in ("embedding_ps.replicas=1", "embedding_ps.replicas=4",
                         "embedding_worker.replicas=1", "embedding_worker.replicas=2",
                         "data_loader.replicas=1", "data_loader.replicas=2")}
    lab.judge("different models", len(digests), at_most(1))
