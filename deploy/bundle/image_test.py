"""The image of ./satrap image: read by the OCI specification and by skopeo, made twice, and run.

The reader here knows nothing of image.py but the specification: a layout of blobs that are named by their
sha256, an index, a manifest, a config, and layers that are applied in their order.
"""
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
import unittest

PROGRAMS = ["deploy/satrap_cli", "deploy/coordinator/coordinator", "data_loader/data_loader",
            "embedding_worker/embedding_worker", "embedding_ps/embedding_ps", "nn_worker/nn_worker",
            "deploy/satrap_pod"]
HERE = pathlib.Path("deploy/bundle")
USER = 65532


def run(*command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)


def make(output, bundle, *libraries, **options):
    return run("python3", "-B", HERE / "image.py", output, bundle, *libraries, **options)


def pack(output, programs):
    result = run(HERE / "pack.sh", output, ".", ".", *programs)
    assert result.returncode == 0, result.stderr
    return output


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def await_that(is_so, seconds=120):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


class Archive:
    """An image in an archive, each blob of which was checked when it was read."""

    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.entries = {entry.name: entry for entry in tar}
            self.files = {name: tar.extractfile(entry).read()
                          for name, entry in self.entries.items() if entry.isfile()}
        assert json.loads(self.files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
        self.index = json.loads(self.files["index.json"])
        assert self.index["schemaVersion"] == 2
        [self.descriptor] = self.index["manifests"]
        self.manifest = json.loads(self.blob(self.descriptor, "manifest.v1+json"))
        assert self.manifest["schemaVersion"] == 2
        self.config = json.loads(self.blob(self.manifest["config"], "config.v1+json"))
        self.tars = [gzip.decompress(self.blob(layer, "layer.v1.tar+gzip"))
                     for layer in self.manifest["layers"]]
        self.layers = []
        for tar in self.tars:
            with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
                self.layers.append(opened.getmembers())

    def blob(self, descriptor, kind):
        assert descriptor["mediaType"] == "application/vnd.oci.image." + kind
        algorithm, name = descriptor["digest"].split(":")
        content = self.files[f"blobs/{algorithm}/{name}"]
        assert algorithm == "sha256" and hashlib.sha256(content).hexdigest() == name
        assert len(content) == descriptor["size"]
        return content

    def unpack(self, folder):
        for tar in self.tars:
            with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
                opened.extractall(folder, numeric_owner=True)


class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        # A small bundle, for tests that do not depend on the size.
        cls.small_bundle = pack(cls.folder / "small.tar", ["deploy/satrap_cli"])
        cls.bundle = pack(cls.folder / "bundle.tar", PROGRAMS)
        cls.path = cls.folder / "image.tar"
        cls.made = make(cls.path, cls.bundle)
        assert cls.made.returncode == 0, cls.made.stderr
        cls.image = Archive(cls.path)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def changed_bundle(self, change):
        """The small bundle after change(folder)."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        with tarfile.open(self.small_bundle) as tar:
            tar.extractall(folder)
        change(folder / "satrap-bundle")
        result = folder / "changed.tar"
        assert run("tar", "-C", folder, "-cf", result, "satrap-bundle").returncode == 0
        shutil.rmtree(folder / "satrap-bundle")
        return result

    def assert_refused(self, result, output, *words):
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for word in words:
            self.assertIn(str(word), result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertFalse(os.path.exists(output))
        self.assertFalse(os.path.exists(f"{output}.new"))

    def test_a_layer_unpacks_to_what_the_config_names(self):
        rootfs = self.image.config["rootfs"]
        self.assertEqual(rootfs["type"], "layers")
        self.assertEqual(rootfs["diff_ids"],
                         ["sha256:" + hashlib.sha256(tar).hexdigest() for tar in self.image.tars])
        self.assertEqual(len(self.image.config["history"]), len(self.image.tars))
        self.assertEqual((self.image.config["os"], self.image.config["architecture"]), ("linux", "amd64"))

    def test_it_is_small(self):
        packed = sum(layer["size"] for layer in self.image.manifest["layers"])
        unpacked = sum(map(len, self.image.tars))
        print(f"{packed} bytes packed, {unpacked} unpacked")
        self.assertLessEqual(packed, 32_000_000)
        self.assertLessEqual(unpacked, 90_000_000)
        self.assertIn(f"{packed} bytes, {unpacked} unpacked", self.made.stderr)

    def test_docker_load_finds_the_same_blobs(self):
        [entry] = json.loads(self.image.files["manifest.json"])
        path = lambda descriptor: "blobs/" + descriptor["digest"].replace(":", "/")
        self.assertEqual(entry["Config"], path(self.image.manifest["config"]))
        self.assertEqual(entry["Layers"], [path(layer) for layer in self.image.manifest["layers"]])
        [name] = entry["RepoTags"]
        self.assertRegex(name, r"^satrap:[0-9a-f]{12}$")
        annotations = self.image.descriptor["annotations"]
        self.assertEqual("satrap:" + annotations["org.opencontainers.image.ref.name"], name)
        self.assertEqual(annotations["io.containerd.image.name"], "docker.io/library/" + name)

    def test_the_same_build_gives_the_same_bytes(self):
        other = self.folder / "elsewhere"
        other.mkdir()
        environment = {**os.environ, "TMPDIR": str(other), "TZ": "Asia/Tokyo", "LC_ALL": "C"}
        private = ["bash", "-c", 'umask 077; exec "$@"', "bash"]
        result = run(*private, HERE / "pack.sh", other / "bundle.tar", ".", ".", *reversed(PROGRAMS),
                     env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        result = run(*private, "python3", "-B", HERE / "image.py", other / "image.tar",
                     other / "bundle.tar", env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, self.made.stdout)
        self.assertEqual((other / "image.tar").read_bytes(), self.path.read_bytes())
        self.assertEqual(self.made.stdout.strip(), self.image.descriptor["digest"])

    def test_another_build_leaves_the_layer_of_libraries(self):
        bundles = (self.small_bundle, self.changed_bundle(
            lambda folder: (folder / "deploy/jobs/another.textproto").write_text("name: 'another'\n")))
        images = []
        for number, bundle in enumerate(bundles):
            output = self.folder / f"build{number}.tar"
            result = make(output, bundle)
            self.assertEqual(result.returncode, 0, result.stderr)
            images.append(Archive(output))
        (lower, upper), (other_lower, other_upper) = (image.manifest["layers"] for image in images)
        self.assertEqual(lower, other_lower)
        self.assertNotEqual(upper, other_upper)
        names = [image.descriptor["annotations"]["io.containerd.image.name"] for image in images]
        self.assertNotEqual(*names)

    def test_programs_lie_above_libraries_and_belong_to_root(self):
        lower, upper = self.image.layers
        files = {entry.name for entry in upper if entry.isfile()}
        self.assertLessEqual({"opt/satrap/" + program for program in PROGRAMS}, files)
        self.assertIn("opt/satrap/deploy/jobs/demo.textproto", files)
        self.assertFalse({entry.name for entry in lower if entry.name.startswith("opt")})
        for entry in lower + upper:
            self.assertEqual(entry.mtime, 0, entry.name)
            self.assertFalse(entry.mode & 0o6000, entry.name)
            if "/" + entry.name == self.image.config["config"]["WorkingDir"]:
                self.assertEqual((entry.uid, entry.gid), (USER, USER))
                continue
            self.assertEqual((entry.uid, entry.gid), (0, 0), entry.name)
            if entry.name == "tmp":
                self.assertEqual(entry.mode, 0o1777)
            elif not entry.issym():
                self.assertFalse(entry.mode & 0o022, entry.name)
        self.assertEqual(self.image.config["config"]["User"], f"{USER}:{USER}")

    def test_openssl_finds_certificates(self):
        root = self.folder / "certificates"
        self.image.unpack(root)
        [library] = root.rglob("libcrypto.so.*")
        [folder] = set(re.findall(rb'OPENSSLDIR: "([^"]+)"', library.read_bytes()))
        link = root / folder.decode().lstrip("/") / "cert.pem"
        certificates = root / os.readlink(link).lstrip("/")
        self.assertIn(b"-----BEGIN CERTIFICATE-----", certificates.read_bytes())

    def test_skopeo_reads_it(self):
        self.assertTrue(shutil.which("skopeo"), "skopeo is missing; ./setup test installs it")
        for transport in ("oci-archive", "docker-archive"):
            result = run("skopeo", "inspect", f"{transport}:{self.path}")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(len(json.loads(result.stdout)["Layers"]), 2)
            # Copy what a registry would get. skopeo checks each digest.
            copy = self.folder / transport
            result = run("skopeo", "copy", "--insecure-policy", f"{transport}:{self.path}", f"dir:{copy}")
            self.assertEqual(result.returncode, 0, result.stderr)
        result = run("skopeo", "inspect", f"oci-archive:{self.path}")
        self.assertEqual(json.loads(result.stdout)["Digest"], self.made.stdout.strip())

    def enter(self):
        """The beginning of a command line that runs something in the image, as its user, with a root that
        cannot be written and a /tmp of its own. Each part becomes the next, so the process stays one."""
        if os.geteuid() != 0 or run("unshare", "--mount", "true").returncode != 0:
            self.skipTest("no mount namespace is allowed here")
        root, home = self.folder / "root", self.folder / "home"
        if not root.exists():
            self.image.unpack(root)
            home.mkdir()
            for name in ("proc", "dev"):
                (root / name).mkdir()
            os.chown(home, USER, USER)
            os.chmod(self.folder, 0o755)
        script = """
set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
mount --rbind /proc "$1/proc"
mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/tmp"
mount --bind "$2" "$1/var/lib/satrap"
root="$1"
shift 2
exec env -i "$(PATH="$PATH:/usr/sbin" command -v chroot)" --userspec=65532:65532 "$root" "$@"
"""
        return ["unshare", "--mount", "bash", "-c", script, "bash", str(root), str(home)]

    def train(self, run_dir, train_samples):
        samples = {"train": train_samples, "valid": 1024, "test": 1024}
        sets = [f"--set=data.synthetic.{name}_samples={count}" for name, count in samples.items()]
        return run(*self.enter(), *self.image.config["config"]["Entrypoint"], "train", "demo", *sets,
                   "--run_dir", run_dir)

    def test_it_trains_as_its_user_on_a_read_only_root_with_nothing_around_it(self):
        enter, config = self.enter(), self.image.config["config"]
        result = run(*enter, *config["Entrypoint"], *config["Cmd"])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("train JOB", result.stdout)
        result = self.train(config["WorkingDir"] + "/run", 20480)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        report = self.folder / "home/run/report.json"
        self.assertTrue(report.stat().st_size)
        self.assertEqual(report.stat().st_uid, USER)
        # Programs that the training has not started must find their libraries, too.
        for program in PROGRAMS:
            result = run(*enter, f"/opt/satrap/{program}", "--no_such_flag")
            self.assertIn(result.returncode, (1, 2), program + ": " + result.stderr)

    def test_roles_under_their_supervisors_train_though_one_is_killed(self):
        home, base = self.folder / "home", self.image.config["config"]["WorkingDir"]
        # The pods run the job of this training, with all defaults filled in.
        result = self.train(base + "/model", 300_000)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        job = (home / "model/job.textproto").read_text()
        self.assertIn(base + "/model", job)
        (home / "pods.textproto").write_text(job.replace(base + "/model", base + "/pods"))
        replicas = {role: int((re.search(role + r" \{[^{}]*?replicas: (\d+)", job) or [0, 1])[1])
                    for role in ("embedding_ps", "embedding_worker", "data_loader", "nn_worker")}
        coordinator = free_port()
        pods = {}
        try:
            def start(role, index, *flags):
                pods[f"{role}_{index}"] = subprocess.Popen(
                    [*self.enter(), "/opt/satrap/deploy/satrap_pod", role, f"--config={base}/pods.textproto",
                     "--scratch=/tmp", *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            start("coordinator", 0, f"--port={coordinator}")
            for role, count in replicas.items():
                for index in range(count):
                    start(role, index, f"--role_index={index}", "--ip=127.0.0.1", f"--port={free_port()}",
                          f"--coordinator=127.0.0.1:{coordinator}")
            log = lambda name: (home / f"pods/logs/{name}.log").read_text(errors="replace") if (
                home / f"pods/logs/{name}.log").exists() else ""
            await_that(lambda: "every role is ready" in log("embedding_ps_0"))
            supervisor = pods["embedding_ps_0"].pid
            role = pathlib.Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
            os.kill(int(role[0]), signal.SIGKILL)
            await_that(lambda: "---- start 2 of embedding_ps 0" in log("embedding_ps_0"))
            self.assertIn("was killed by signal 9", log("embedding_ps_0"))
            await_that(lambda: "FINISHED" in log("coordinator_0"))
        finally:
            for pod in pods.values():
                pod.terminate()
            ends = {name: (pod.communicate()[0].decode(), pod.returncode) for name, pod in pods.items()}
        for name, (output, code) in ends.items():
            self.assertEqual(code, 143, name + ": " + output)
        # The log in the run's folder must be what kubectl logs would show.
        self.assertEqual(ends["embedding_ps_0"][0], log("embedding_ps_0"))

    def test_with_cuda_it_has_further_libraries_and_asks_for_the_driver(self):
        # The library is larger than an image without CUDA may be.
        library = self.folder / "libcublasLt.so.13"
        library.write_bytes(bytes(100_000_000))
        bundle = self.changed_bundle(lambda folder: shutil.copy(
            folder / "deploy/satrap_cli", folder / "nn_worker/nn_worker_cuda"))
        output = self.folder / "cuda.tar"
        result = make(output, bundle, library)
        self.assertEqual(result.returncode, 0, result.stderr)
        image = Archive(output)
        lower = {os.path.basename(entry.name): entry for entry in image.layers[0]}
        self.assertEqual(lower[library.name].size, 100_000_000)
        self.assertEqual(os.path.dirname(lower[library.name].name),
                         os.path.dirname(lower["libc.so.6"].name))
        self.assertIn("NVIDIA_DRIVER_CAPABILITIES=compute,utility", image.config["config"]["Env"])
        self.assertNotIn("Env", self.image.config["config"])

        output = self.folder / "missing.tar"
        self.assert_refused(make(output, bundle, self.folder / "libnccl.so.2"), output, "libnccl.so.2")

    def test_what_a_further_library_needs_is_in_the_image_too(self):
        folder = self.folder / "further"
        folder.mkdir()
        for name, needed in (("needed", ()), ("named", ("-lneeded", f"-Wl,-rpath,{folder}"))):
            library = folder / f"lib{name}.so"
            made = run("gcc", "-shared", "-Wl,--no-as-needed", "-x", "c", os.devnull, "-x", "none",
                       "-L", folder, *needed, "-o", library)
            self.assertEqual(made.returncode, 0, made.stderr)
        output = self.folder / "further.tar"
        result = make(output, self.small_bundle, folder / "libnamed.so")
        self.assertEqual(result.returncode, 0, result.stderr)
        lower = {os.path.basename(entry.name) for entry in Archive(output).layers[0]}
        self.assertLessEqual({"libnamed.so", "libneeded.so"}, lower)

        (folder / "libneeded.so").unlink()
        output = self.folder / "needed.tar"
        self.assert_refused(make(output, self.small_bundle, folder / "libnamed.so"), output,
                            "libnamed.so needs libneeded.so")

    def test_too_large_an_image_is_refused(self):
        output = self.folder / "large.tar"
        for content, words in ((os.urandom(32_000_000), ("packed", "32000000")),
                               (bytes(90_000_000), ("unpacked", "90000000"))):
            bundle = self.changed_bundle(lambda folder: (folder / "deploy/large").write_bytes(content))
            self.assert_refused(make(output, bundle), output, *words, "leave programs out")

    def test_what_is_no_bundle_is_refused(self):
        output = self.folder / "none.tar"
        nothing = self.folder / "nothing"
        self.assert_refused(make(output, nothing), output, nothing)
        nothing.write_bytes(b"no archive")
        self.assert_refused(make(output, nothing), output, nothing)
        bundle = self.changed_bundle(lambda folder: (folder / "deploy/satrap_cli").unlink())
        self.assert_refused(make(output, bundle), output, "satrap-bundle/deploy/satrap_cli")

    def test_a_program_that_lacks_a_library_is_refused(self):
        output = self.folder / "lacks.tar"
        # Rename a library in the program, to a name of the same length that no machine has.
        def rename(folder):
            program = folder / "deploy/satrap_cli"
            content = program.read_bytes()
            self.assertIn(b"libprotobuf.so.32\0", content)
            program.write_bytes(content.replace(b"libprotobuf.so.32\0", b"libprotobuf.so.99\0"))
        self.assert_refused(make(output, self.changed_bundle(rename)), output,
                            "satrap_cli needs libprotobuf.so.99")

    def test_a_place_that_cannot_be_written_is_named(self):
        output = self.folder / "no such folder/image.tar"
        self.assert_refused(make(output, self.bundle), output, output, "No such file")
        folder = self.folder / "a folder"
        folder.mkdir()
        self.assert_refused(make(folder, self.bundle), self.folder / "none", folder, "it is a folder")
        self.assertEqual(list(folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
