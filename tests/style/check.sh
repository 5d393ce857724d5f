#!/usr/bin/env bash
# Checks one style rule on all sources of a checkout.
#
#   check.sh RULE ROOT [ALLOWED]
#
# Prints each violation as "PATH[:LINE]: what is wrong" and exits with 1 if there is any. ALLOWED
# lists exceptions, one per line: RULE PATH reason. An unused exception is a violation, too.
set -euo pipefail
rule="$1"
root="$2"
allowed="${3:-/dev/null}"
here="$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
cd "$root"

files() { "$here/sources.sh" . "$@"; }

# Runs the awk program $1 over the files listed on stdin.
scan() { xargs -r -d '\n' awk "$1"; }

# clang-format decides how code is formatted.
check_format() {
  clang-format-14 --version >/dev/null
  { files '*.h' '*.cc' |
    xargs -r -d '\n' clang-format-14 --style=file --dry-run -Werror --ferror-limit=1 2>&1 || true; } |
    sed -n 's/^\([^ :]*:[0-9]*\):.*error: .*/\1: not formatted; run .\/satrap format/p'
}

# The folders of a role from the lowest to the highest: each includes only folders before it, and its own.
# A folder that is not named counts as the one that it is in. Tests and benchmarks stand beside their
# source and may include any folder of their role.
folder_order='
common: base flags json log numeric file file/testing thread life rpc chunk metrics kafka testing config learning_rate
common: batch checkpoint/ledger checkpoint role refusal candidates
data_loader: source transform engine parser check synthetic batch candidates kafka . testing
embedding_worker: candidates .
embedding_ps: initializer optimizer table checkpoint . testing
nn_worker: operation device device/cuda device/host device/kernels device/testing rank/schedule rank rank/testing collective products
nn_worker: metrics metrics/testing backend backend/cpu backend/device backend/testing optimizer layer report graph/model graph/saved graph/step graph checkpoint zoo backend/benchmark trainer/memory_plan trainer
nn_worker: trainer/testing .
deploy: report kafka coordinator/topics coordinator/splits coordinator/claim coordinator coordinator/testing launcher/process pod launcher launcher/testing
deploy: retrieve submit story cli/show cli cli/chaos cli/bench cli/kafka_demo cli/tools
'

# The libraries that only some folders may include: the beginning of a header, then the beginnings of
# paths. A target holds a whole folder, so that one include would link a library into all its users.
library_users='
grpc common/rpc/ tests/
gloo/ nn_worker/collective/gloo_collective.
dnnl nn_worker/backend/cpu/ nn_worker/backend/benchmark/product_benchmark. deploy/retrieve/
oneapi/dnnl nn_worker/backend/cpu/ nn_worker/backend/benchmark/product_benchmark. deploy/retrieve/
librdkafka/ common/kafka/ tests/kafka/
prometheus/ common/metrics/
spdlog/ common/log/
'

# Layers: proto <- common <- roles <- deploy <- tests. Roles do not include each other, and only
# service and client files include generated services. The values of a tensor are reached directly
# by backends in host memory alone, so that everything else works on a device.
check_layers() {
  export folder_order library_users
  files '*.h' '*.cc' | scan '
    function may(from, to) {
      if (from == to || from == "tests") return 1
      if (to == "tests") return 0
      if (to == "proto") return 1
      if (to == "common") return from != "proto"
      return from == "deploy" && to != "deploy"
    }
    # The place of the folder of a path of a role; 0 if there is none.
    function place(path,   role, folder) {
      role = path; sub(/\/.*/, "", role)
      folder = substr(path, length(role) + 2)
      while (sub(/\/?[^\/]*$/, "", folder) && folder != "")
        if ((role, folder) in order) return order[role, folder]
      return order[role, "."]
    }
    BEGIN {
      n = split("proto common data_loader embedding_worker embedding_ps nn_worker deploy tests", l, " ")
      for (i = 1; i <= n; i++) layer[l[i]] = 1
      n = split(ENVIRON["folder_order"], l, "[ \n]+")
      for (i = 1; i <= n; i++) {
        if (l[i] ~ /:$/) { role = l[i]; sub(/:/, "", role); ordered[role] = 1 }
        else if (l[i] != "") order[role, l[i]] = i
      }
      libraries = split(ENVIRON["library_users"], library, "\n")
    }
    FNR == 1 { split(FILENAME, part, "/"); from = part[1]; test = FILENAME ~ /_(test|benchmark)\.cc$/ }
    /^#include [<"]/ {
      header = substr($2, 2)
      for (i = 1; i <= libraries; i++) {
        n = split(library[i], user, " ")
        if (n == 0 || index(header, user[1]) != 1) continue
        allowed = 0
        for (j = 2; j <= n; j++) if (index(FILENAME, user[j]) == 1) allowed = 1
        if (!allowed) print FILENAME ":" FNR ": only these may include " user[1] ": " library[i]
      }
    }
    /^#include "/ {
      split($2, quoted, "\""); split(quoted[2], target, "/"); to = target[1]
      if (layer[to] && layer[from] && !may(from, to))
        print FILENAME ":" FNR ": " from " may not include " to
      if (to == from && ordered[to] && !test) {
        if (!place(FILENAME) || !place(quoted[2]))
          print FILENAME ":" FNR ": folder_order does not name one of the folders"
        else if (place(FILENAME) < place(quoted[2]))
          print FILENAME ":" FNR ": includes a higher folder of " from " (folder_order in check.sh)"
      }
      if (quoted[2] ~ /\.grpc\.pb\.h$/ && FILENAME !~ /(service|client)[a-z_]*\.(h|cc)$/ &&
          FILENAME !~ /_test\.cc$/)
        print FILENAME ":" FNR ": services are included by service and client files only"
    }
    $2 == "\"nn_worker/backend/cpu/host_tensor.h\"" &&
        FILENAME !~ /^nn_worker\/backend\/(cpu\/cpu|testing\/reference|benchmark\/product)_[a-z0-9_]*\.cc$/ {
      print FILENAME ":" FNR ": only backends in host memory reach the values of a tensor"
    }
    /^#include [<"](cuda|cublas|nccl)/ &&
        FILENAME !~ /^nn_worker\/(device\/cuda\/[a-z_]*|collective\/nccl_collective)\.cc$/ &&
        FILENAME != "nn_worker/device/cuda/cublaslt_functions.h" {
      print FILENAME ":" FNR ": CUDA stays in the sources of nn_worker/device/cuda and nccl_collective.cc"
    }'
  files '*BUILD' | { grep -v '^third_party/' || true; } | scan '
    /default_visibility.*public/ { print FILENAME ":" FNR ": targets are private by default" }'
}

# Code that is compiled conditionally is not tested by those who build the other branch.
check_conditionals() {
  files '*.h' '*.cc' | scan '
    /^ *# *(if|ifdef|ifndef|elif) / && !/^#ifndef SATRAP_[A-Z0-9_]*_H_$/ {
      print FILENAME ":" FNR ": conditional compilation"
    }'
}

# A header begins with a comment that states its contract, and its guard is made of its path.
check_headers() {
  files '*.h' | scan '
    function finish() { if (path != "" && !guarded) print path ": no guard " guard }
    FNR == 1 {
      finish()
      path = FILENAME; guarded = 0
      guard = "SATRAP_" toupper(path) "_"; gsub(/[^A-Z0-9_]/, "_", guard)
      if ($0 !~ /^\/\/ ./) print path ":1: a header begins with the comment that is its contract"
    }
    $0 == "#ifndef " guard { guarded = 1 }
    END { finish() }'
}

# clang-format breaks the lines of code, but leaves those of comments alone, and it does not read protos.
check_widths() {
  files '*.h' '*.cc' '*.proto' | scan '
    (/^ *\/\// || FILENAME ~ /\.proto$/ && /\/\//) && length($0) > 100 {
      print FILENAME ":" FNR ": a comment of more than 100 columns"
    }'
}

# A longer file or function probably does two things; if not, ALLOWED says why. The comment that a
# header begins with, its contract, does not count.
check_sizes() {
  files '*.h' '*.cc' | scan '
    function finish() {
      limit = path ~ /\.h$/ ? 150 : 500
      if (path != "" && lines > limit) print path ": " lines " lines, more than " limit
    }
    FNR == 1 { finish(); path = FILENAME; start = 0; contract = path ~ /\.h$/; skipped = 0 }
    contract && /^\/\// { ++skipped }
    !/^\/\// { contract = 0 }
    { lines = FNR - skipped }
    # A table or a text that is given a value is data.
    /^[A-Za-z].*[({,]$/ && !/^(namespace|class|struct|enum|extern|union)[ {]/ && !/ = (R"[a-z]*\(|\{)$/ {
      start = FNR; opened = 0
    }
    start && /{$/ { opened = 1 }
    start && !opened && /;$/ { start = 0 }  # a declaration
    /^}/ && start {
      if (FNR - start > 70) print path ":" start ": a function of " FNR - start " lines, more than 70"
      start = 0
    }
    END { finish() }'
}

# Who looks for a file reads the names of a folder. More than 40 are several subjects; if not, ALLOWED says why.
check_rooms() {
  files '*' | awk '
    sub(/\/[^\/]*$/, "") { ++count[$0] }
    END { for (folder in count) if (count[folder] > 40) print folder ": " count[folder] " files, more than 40" }' |
    sort
}

# What only tests include is no part of the product. It stands in a folder testing, or in tests.
check_support() {
  { files '*.h'; echo =; files '*.h' '*.cc' | xargs -r -d '\n' grep -H '^#include "' || true; } | awk -F '"' '
    $0 == "=" { includes = 1; next }
    !includes { exists[$0] = 1; next }
    {
      from = $1; sub(/:.*/, "", from)
      own = from; sub(/\.cc$/, ".h", own)
      if (own == $2 || !($2 in exists)) next
      if (from ~ /_test\.cc$|(^|\/)(testing|tests)\//) tests[$2] = 1
      else product[$2] = 1
    }
    END {
      for (header in tests)
        if (!(header in product) && header !~ /(^|\/)(testing|tests)\//)
          print header ": only tests include it; it belongs in a folder testing"
    }' | sort
}

# Markers of unfinished work, names that say nothing, and paths and addresses that are valid on one
# machine or network only.
check_words() {
  local markers='TO''DO|FIX''ME|X''XX' paths='/(wo''rk|tm''p|home|root|Users)/'
  files '*.h' '*.cc' '*.sh' '*.bzl' '*.proto' '*.textproto' '*.md' '*BUILD' satrap setup .ci/run |
    xargs -r -d '\n' grep -nHE "\b($markers)\b" | sed 's/:\([0-9]*\):.*/:\1: an unfinished thing/' || true
  files '*.h' '*.cc' '*.sh' '*.bzl' '*.proto' '*.textproto' '*.md' '*BUILD' satrap setup .ci/run |
    xargs -r -d '\n' grep -nHE "(^|[^A-Za-z0-9_.}\$>*])$paths" |
    sed 's/:\([0-9]*\):.*/:\1: a path of one machine/' || true
  files '*.h' '*.cc' '*.sh' '*.bzl' '*.proto' '*.textproto' '*BUILD' satrap setup .ci/run |
    xargs -r -d '\n' grep -nHE 'https?://[A-Za-z0-9-]+\.[A-Za-z]' |
    sed 's/:\([0-9]*\):.*/:\1: an address on the net/' || true
  files '*.h' '*.cc' | scan '
    /(^|[^a-z_])(secure_)?getenv *\(/ && FILENAME !~ /^tests\// {
      print FILENAME ":" FNR ": our code reads no environment variables"
    }
    FNR == 1 && FILENAME ~ /(_|\/)(utils?|helpers?|manager|impl|misc)\.(h|cc)$/ {
      print FILENAME ": a name that says nothing"
    }
    FILENAME ~ /\.h$/ {
      sub(/\/\/.*/, "")
      if (/[A-Za-z0-9](Manager|Helper|Utils?|Impl)([A-Z_(){};:,. <>&*]|$)/)
        print FILENAME ":" FNR ": a name that says nothing"
    }'
}

# Texts are for people: what to do follows from codes, marks and the fields of an Ending. So nobody but
# tests compares or searches the message of a status, the text of an ending, a cause, a reason, or a line
# of a log.
check_endings() {
  files '*.h' '*.cc' |
    { grep -vE '^tests/|_test\.cc$|/testing/' || true; } | scan '
    # A text for people, a search, and a comparison. A statement may stand in several lines.
    BEGIN {
      text = "(error_)?message\\(\\)|(ending|ended|how|told|left|failure|echo)(\\(\\))?(\\.|->)text\\(\\)"
      text = text "|(stop_)?reason\\(\\)|cause\\(\\)|LastErrorOf\\([^()]*\\)"
      object = "([A-Za-z_.>()*-]*[.>(*])?"
      before = "(^|[^A-Za-z0-9_])"
    }
    FNR == 1 {
      statement = ""
      words = text
      if (FILENAME ~ /^(common\/(checkpoint|role)|deploy)\//) words = words "|(stop_)?(reason|cause)|message|failure|loss"
      if (FILENAME ~ /^deploy\/(launcher|cli\/bench)\//) words = words "|(last_|log_)?line"
      words = "(" words ")"
      search = "(Contains|With|Prefix|Suffix|IgnoreCase)\\(&?" object words "[,)]"
      member = before words "(\\.|->)(find|rfind|compare|starts_with|ends_with)\\("
      compared = before words " *(==|!=) |(==|!=) *" object words "($|[^A-Za-z0-9_(.>-])"
    }
    {
      code = $0; sub(/ *\/\/.*/, "", code); sub(/^ +/, "", code)
      if (statement == "") start = FNR
      statement = statement (statement ~ /[(]$/ ? "" : " ") code
      if (code !~ /[;{}:]$/ && code != "") next
      if (statement ~ search || statement ~ member || statement ~ compared)
        print FILENAME ":" start ": decides by a text for people; use a code, a mark or a field of Ending"
      statement = ""
    }'
}

# A field of the job that only validation and printing read would have no effect.
check_fields() {
  files '*.proto' | { grep -E '^proto/(job|data|kafka|kubernetes|model|optimizer|schedule|table)\.proto$' || true; } |
    xargs -r -d '\n' awk '
      { sub(/\/\/.*/, "") }
      /^ +((optional|repeated) +)?[A-Za-z][A-Za-z0-9_.]* +[a-z][a-z0-9_]* = [0-9]+/ {
        name = $0; sub(/ = [0-9].*/, "", name); sub(/.* /, "", name)
        n = split(name, word, "_"); constant = "k"  # of a oneof
        for (i = 1; i <= n; i++) constant = constant toupper(substr(word[i], 1, 1)) substr(word[i], 2)
        print FILENAME ":" FNR, name, constant
      }' |
    while read -r place name constant; do
      grep -qE "[.>](has_)?$name(_size)?\(|::$constant\b" "$readers" ||
        echo "$place: no code reads the field $name"
    done
}

# `./satrap test host-device` finds its tests by their tag.
check_tags() {
  files '*BUILD' | scan '
    /^ *[a-z_]+_test\($/ { start = FNR; uses = tagged = manual = 0 }
    start && /"[^"]*(:host_device|:host_device_backend|:host_device_factory|:planned_host_backend|device\/testing|:layer_testing)"/ {
      uses = 1
    }
    start && !/name = / && /"host_device"/ { tagged = 1 }
    start && /"manual"/ { manual = 1 }
    start && /^ *\)$/ {
      if (uses && !tagged && !manual)
        print FILENAME ":" start ": a test on the host\047s device needs the tag host_device"
      start = 0
    }'
}

# A source stands in a list of the BUILD file of its folder, a test in one of a test, or nobody compiles
# it. Lists that have a name of their own may be either.
check_targets() {
  { files '*BUILD'; echo =; files '*.cc' '*.h' | { grep -vE '^(third_party|bazel)/' || true; }; } | awk '
    function folder_of(path) { return sub(/\/[^\/]*$/, "", path) ? path : "." }
    $0 == "=" { sources = 1; next }
    !sources {
      folder = folder_of($0); kind = ""
      while ((getline line < $0) > 0) {
        if (line ~ /^[a-z_]+\($/) kind = line ~ /_test\($/ ? "test" : "library"
        else if (line ~ /^[a-z_]+\(.+\)$/) kind = "library"
        else if (line ~ /^_[A-Z_]+ = /) kind = "either"
        if (line ~ /^ *name = /) continue
        while (match(line, /"[^"]*"/)) {
          listed[folder, kind, substr(line, RSTART + 1, RLENGTH - 2)] = 1
          line = substr(line, RSTART + RLENGTH)
        }
      }
      close($0)
      next
    }
    {
      folder = folder_of($0); file = $0; sub(/.*\//, "", file)
      name = file; sub(/\.[a-z]*$/, "", name)
      kind = sub(/_test$/, "", name) && file ~ /\.cc$/ ? "test" : "library"
      if (kind == "library") { name = file; sub(/\.[a-z]*$/, "", name) }
      if (!((folder, kind, name) in listed) && !((folder, "either", name) in listed) &&
          !((folder, kind, file) in listed) && !((folder, "test", file) in listed))
        print $0 ": no list of a " kind " in " folder "/BUILD names \"" name "\""
    }'
}

# Removes the violations that ALLOWED excepts, and adds the exceptions that are not needed.
apply_allowed() {
  awk -v rule="$rule" -v allowed="$allowed" '
    BEGIN {
      while ((getline line < allowed) > 0) {
        split(line, word, " ")
        if (word[1] == rule) exception[word[2]] = line
      }
    }
    {
      split($0, field, ":")
      if (field[1] in exception) { needed[field[1]] = 1; next }
      print; bad = 1
    }
    END {
      for (path in exception) if (!(path in needed)) {
        print allowed ": no longer needed: " exception[path]; bad = 1
      }
      exit bad
    }'
}

case "$rule" in
  format | layers | conditionals | endings | headers | rooms | sizes | support | tags | targets | widths | words) "check_$rule" | apply_allowed ;;
  fields)
    readers="$(mktemp)"
    trap 'rm -f "$readers"' EXIT
    files '*.h' '*.cc' | { grep -vE '^(common/config/(validate|field_path|config_reference)|tests/)|_test\.cc$' || true; } |
      xargs -r -d '\n' cat >"$readers"
    check_fields | apply_allowed
    ;;
  *)
    echo "check.sh: no rule $rule" >&2
    exit 2
    ;;
esac
