"""The program behind run.sh, whose head describes the command line."""

import argparse
import os
import sys
import tempfile
import time

import checks
import lab as lab_module


def parse(argv):
    parser = argparse.ArgumentParser(prog="tests/quality/run.sh")
    parser.add_argument("tier", choices=["fast", "full"])
    parser.add_argument("--data", metavar="DIR", help="a folder for each data set")
    parser.add_argument("--only", metavar="NAME", action="append", default=[],
                        help="this check; may be given again")
    parser.add_argument("--list", action="store_true", help="print the checks of the tier")
    parser.add_argument("--satrap", metavar="COMMAND", help="default: ./satrap of this checkout")
    options = parser.parse_args(argv)
    if options.data:
        options.data = os.path.abspath(options.data)
        if not os.path.isdir(options.data):
            parser.error(f"--data {options.data}: no such folder")
    chosen = [each for each in checks.CHECKS if options.tier in each.tiers]
    unknown = set(options.only) - {each.name for each in chosen}
    if unknown:
        parser.error(f"--only: the tier {options.tier} has no check {', '.join(sorted(unknown))}")
    if options.only:
        chosen = [each for each in chosen if each.name in options.only]
    return options, chosen


def lacks(check, data):
    """The data set that a check needs and that is not there, or None."""
    if check.data and not (data and os.path.isdir(os.path.join(data, check.data))):
        return check.data
    return None


def main(argv):
    options, chosen = parse(argv)
    if options.list:
        for check in chosen:
            print(f"{check.name:20} {check.data or '':11} {check.about}")
        return 0
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    begin = time.monotonic()
    skipped = []
    with tempfile.TemporaryDirectory() as work:
        satrap = options.satrap or os.path.join(root, "satrap")
        lab = lab_module.Lab(satrap, root, options.data, work)
        for check in chosen:
            missing = lacks(check, options.data)
            if missing:
                skipped.append((check.name, missing))
                print(f"skipped {check.name}: --data has no folder {missing}", flush=True)
                continue
            print(f"{check.name}: {check.about}", flush=True)
            lab.begin(check.name)
            try:
                check.function(lab, options.tier)
            except lab_module.Failed as failure:
                lab.fail(str(failure))
    print("\nsummary")
    for figure in lab.figures:
        print(lab_module.line_of(figure))
    missed = sum(not figure.passed for figure in lab.figures)
    for name, missing in skipped:
        print(f"skipped {name}: --data has no folder {missing}")
    print(f"{len(lab.figures) - missed} passed, {missed} missed, {len(skipped)} checks skipped, "
          f"{time.monotonic() - begin:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
