#!/usr/bin/env python3
"""Makes a container image of a bundle, without a container engine.

    image.py OUTPUT BUNDLE [LIBRARY...]

OUTPUT: an archive that is an OCI layout (OCI image specification 1.0) and can be read by `docker load`,
too. BUNDLE: an uncompressed archive of pack.sh. LIBRARY: further libraries, such as CUDA's; an image that
has some may be of any size, another has at most 32 MB, and 90 MB when it is unpacked.

The image holds what is in the bundle but for the scripts, which need a shell; and of this machine glibc
and the certificates of well-known authorities. Two layers: libraries, then programs, so that another build
sends only its programs to a registry. The same inputs give the same bytes: nothing depends on names of
folders, times, users or the order of files on a disk. Prints the digest of the image's manifest.
"""
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tarfile
import tempfile

PACKED_LIMIT_BYTES = 32_000_000
UNPACKED_LIMIT_BYTES = 90_000_000
USER = 65532  # what images without root use by convention
INSTALL_DIR = "opt/satrap"
HOME = "var/lib/satrap"  # of USER, for runs
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
OCI = "application/vnd.oci.image"


class ImageError(Exception):
    """A message for the user."""


class Layer:
    """Files, folders and links by their path in the image, without a leading slash."""

    def __init__(self, title):
        self.title = title
        self._entries = {}

    def _add(self, path, kind, mode, content=b""):
        """Adds an entry, and the folders above it. Returns it, with the owner root and the time 0."""
        parent = os.path.dirname(path)
        if parent and parent not in self._entries:
            self.folder(parent)
        entry = tarfile.TarInfo(path)
        entry.type = kind
        entry.mode = mode
        entry.size = len(content)
        self._entries[path] = (entry, content)
        return entry

    def folder(self, path, mode=0o755, owner=0):
        entry = self._add(path, tarfile.DIRTYPE, mode)
        entry.uid = entry.gid = owner

    def file(self, path, content, executable=False):
        self._add(path, tarfile.REGTYPE, 0o755 if executable else 0o644, content)

    def link(self, path, target):
        self._add(path, tarfile.SYMTYPE, 0o777).linkname = target

    def tar(self):
        """The layer's archive. A folder comes before its contents."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for path in sorted(self._entries, key=lambda path: path.split("/")):
                entry, content = self._entries[path]
                tar.addfile(entry, io.BytesIO(content))
        return archive.getvalue()


def links_of(programs, libraries_dir):
    """What the dynamic linker loads for `programs`: {name: path}, and the path of the linker itself."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C",
                   "LD_LIBRARY_PATH": str(libraries_dir)}
    loaded, interpreter = {}, None
    for program in programs:
        result = subprocess.run(["ldd", str(program)], env=environment, capture_output=True, text=True)
        if result.returncode != 0:
            raise ImageError(f"ldd does not read {program.name}: {(result.stderr or result.stdout).strip()}")
        for line in result.stdout.splitlines():
            # "libz.so.1 => /usr/lib/libz.so.1 (0x...)", "/lib64/ld-linux-x86-64.so.2 (0x...)"
            words = line.split()
            if "not found" in line:
                raise ImageError(f"{program.name} needs {words[0]}, which neither the bundle nor this machine has")
            if len(words) >= 3 and words[1] == "=>" and words[2].startswith("/"):
                loaded[words[0]] = words[2]
            elif words and words[0].startswith("/") and "ld-linux" in words[0]:
                interpreter = words[0]
    if interpreter is None or "libc.so.6" not in loaded:
        raise ImageError("the bundle holds no program that is linked to glibc")
    return loaded, interpreter


def openssl_dir(libraries):
    """The folder in which this OpenSSL looks for certificates; None if there is no OpenSSL."""
    for name, content in libraries.items():
        if name.startswith("libcrypto.so"):
            found = re.search(rb'OPENSSLDIR: "/([^"]+)"', content)
            if found is None:
                raise ImageError(f"{name} does not say where it looks for certificates (OPENSSLDIR)")
            return found.group(1).decode()
    return None


def library_layer(bundle, programs, extra):
    """glibc, the bundle's libraries, certificates, and the files that programs look for in /etc.

    Libraries lie where this machine's linker looks for them by itself, so that no variable is needed.
    """
    # Libraries that a program opens by name need libraries, too: CUDA's runtime needs glibc's stubs.
    shared = [path for path in map(pathlib.Path, extra) if is_elf(path)]
    loaded, interpreter = links_of([*programs, *shared], bundle / "lib")
    libraries = {path.name: path.read_bytes() for path in (bundle / "lib").iterdir()}
    # The real folder of glibc: in Debian, lib is a link to usr/lib.
    folder = os.path.realpath(os.path.dirname(loaded["libc.so.6"])).lstrip("/")
    for name, path in loaded.items():
        if name not in libraries:
            libraries[name] = pathlib.Path(path).read_bytes()
    for path in extra:
        libraries[os.path.basename(path)] = pathlib.Path(path).read_bytes()

    layer = Layer("libraries")
    for name, content in libraries.items():
        layer.file(f"{folder}/{name}", content, executable=True)
    layer.file("usr" + interpreter, pathlib.Path(interpreter).read_bytes(), executable=True)
    for top in sorted({interpreter.split("/")[1], "lib"}):
        layer.folder("usr/" + top)
        layer.link(top, "usr/" + top)

    if not CERTIFICATES.is_file():
        raise ImageError(f"{CERTIFICATES} is missing: install the package ca-certificates")
    certificates = str(CERTIFICATES).lstrip("/")
    layer.file(certificates, CERTIFICATES.read_bytes())
    ssl = openssl_dir(libraries)
    if ssl is not None:
        layer.link(f"{ssl}/cert.pem", "/" + certificates)

    layer.file("etc/passwd", (f"root:x:0:0:root:/:/sbin/nologin\n"
                              f"satrap:x:{USER}:{USER}:satrap:/{HOME}:/sbin/nologin\n").encode())
    layer.file("etc/group", f"root:x:0:\nsatrap:x:{USER}:\n".encode())
    # Without this file glibc asks DNS before it reads /etc/hosts.
    layer.file("etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n")
    # By these files scanners know where the libraries come from, and NVIDIA's runtime knows where to
    # put the driver's libraries.
    for name in ("os-release", "debian_version"):
        path = pathlib.Path("/etc") / name
        if path.is_file():
            layer.file(f"etc/{name}", path.read_bytes())
    layer.folder("tmp", mode=0o1777)
    layer.folder(HOME, owner=USER)
    return layer


def program_layer(bundle):
    """What the bundle contains besides its libraries, below INSTALL_DIR."""
    layer = Layer("programs")
    for path in bundle.rglob("*"):
        inside = path.relative_to(bundle)
        # Leave out scripts, which need a shell, and the list of tests, which only a script reads.
        scripts = inside.suffix in (".sh", ".py") or str(inside) in ("satrap", "tests.txt")
        if inside.parts[0] == "lib" or scripts or not path.is_file():
            continue
        executable = bool(path.stat().st_mode & stat.S_IXUSR)
        layer.file(f"{INSTALL_DIR}/{inside}", path.read_bytes(), executable)
    return layer


def elf_files(bundle):
    """The programs of the bundle, in an order that does not depend on the disk."""
    found = []
    for path in sorted(bundle.rglob("*")):
        if path.is_file() and path.relative_to(bundle).parts[0] != "lib":
            if is_elf(path):
                found.append(path)
    return found


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def digest_of(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def to_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def packed(content):
    """gzip, which every registry and engine reads, without a time and a name."""
    stream = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=6, mtime=0) as file:
        file.write(content)
    return stream.getvalue()


def config_of(tars, layers, cuda):
    config = {
        "Entrypoint": [f"/{INSTALL_DIR}/deploy/satrap_cli", f"--install_dir=/{INSTALL_DIR}"],
        "Cmd": ["help"],
        "User": f"{USER}:{USER}",
        "WorkingDir": "/" + HOME,
        "Labels": {"org.opencontainers.image.title": "satrap"},
    }
    if cuda:
        # If the first variable is unset, NVIDIA's runtime does not provide libcuda.so. The folders are
        # those in which that runtime, and clouds without it, put the driver's libraries.
        config["Env"] = ["NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                         "LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/lib64"]
    epoch = "1970-01-01T00:00:00Z"
    return to_json({
        "architecture": "amd64",
        "os": "linux",
        "created": epoch,
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [digest_of(tar) for tar in tars]},
        "history": [{"created": epoch, "created_by": f"satrap image: {layer.title}"} for layer in layers],
    })


def check_size(what, size_bytes, limit_bytes):
    if size_bytes > limit_bytes:
        raise ImageError(f"{what} the image would have {size_bytes} bytes, more than {limit_bytes}: "
                         f"leave programs out")


class Image:
    """The blobs of an image, and the names by which its archive is read."""

    def __init__(self, layers, cuda, limited):
        tars = [layer.tar() for layer in layers]
        self.unpacked_bytes = sum(len(tar) for tar in tars)
        if limited:
            check_size("unpacked", self.unpacked_bytes, UNPACKED_LIMIT_BYTES)
        layer_blobs = [packed(tar) for tar in tars]
        self.packed_bytes = sum(len(blob) for blob in layer_blobs)
        if limited:
            check_size("packed", self.packed_bytes, PACKED_LIMIT_BYTES)
        config = config_of(tars, layers, cuda)
        manifest = to_json({
            "schemaVersion": 2,
            "mediaType": f"{OCI}.manifest.v1+json",
            "config": self._descriptor("config.v1+json", config),
            "layers": [self._descriptor("layer.v1.tar+gzip", blob) for blob in layer_blobs],
        })
        self.digest = digest_of(manifest)
        # The name depends on the content, so two images never have the same name.
        tag = digest_of(config).split(":")[1][:12]
        self.name = f"satrap:{tag}"
        index = {
            "schemaVersion": 2,
            "mediaType": f"{OCI}.index.v1+json",
            "manifests": [{
                **self._descriptor("manifest.v1+json", manifest),
                "platform": {"architecture": "amd64", "os": "linux"},
                "annotations": {"org.opencontainers.image.ref.name": tag,
                                "io.containerd.image.name": f"docker.io/library/{self.name}"},
            }],
        }
        for_docker = [{
            "Config": self._blob_path(config),
            "RepoTags": [self.name],
            "Layers": [self._blob_path(blob) for blob in layer_blobs],
        }]
        self._files = [("oci-layout", to_json({"imageLayoutVersion": "1.0.0"})),
                       ("index.json", to_json(index)), ("manifest.json", to_json(for_docker))]
        self._files += [(self._blob_path(blob), blob) for blob in (manifest, config, *layer_blobs)]

    @staticmethod
    def _descriptor(kind, blob):
        return {"mediaType": f"{OCI}.{kind}", "digest": digest_of(blob), "size": len(blob)}

    @staticmethod
    def _blob_path(blob):
        return "blobs/" + digest_of(blob).replace(":", "/")

    def archive(self):
        archive = Layer("image")
        for path, content in self._files:
            archive.file(path, content)
        return archive.tar()


def unpack(bundle, folder):
    try:
        with tarfile.open(bundle, "r:") as tar:
            # Python before 3.11.4 has no filters.
            tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    except (OSError, tarfile.TarError) as error:
        raise ImageError(f"cannot read the bundle {bundle}: {error}") from error
    root = pathlib.Path(folder) / "satrap-bundle"
    for name in ("lib", "deploy/satrap_cli"):
        if not (root / name).exists():
            raise ImageError(f"{bundle} is not a bundle of pack.sh: it lacks satrap-bundle/{name}")
    return root


def make(bundle, extra):
    with tempfile.TemporaryDirectory() as folder:
        root = unpack(bundle, folder)
        missing = [path for path in extra if not os.path.isfile(path)]
        if missing:
            raise ImageError(f"there is no library {missing[0]}")
        cuda = (root / "nn_worker/nn_worker_cuda").exists()
        layers = [library_layer(root, elf_files(root), extra), program_layer(root)]
    return Image(layers, cuda, limited=not extra)


def write(output, bundle, extra):
    """Makes the image and writes it. The archive is never visible in part."""
    if os.path.isdir(output):
        raise ImageError(f"cannot write {output}: it is a folder")
    partial = output + ".new"
    try:
        # Open the output first, so that it is reported at once if it cannot be written.
        with open(partial, "wb") as file:
            try:
                image = make(bundle, extra)
                file.write(image.archive())
                file.close()
                os.replace(partial, output)
            except BaseException:
                os.remove(partial)
                raise
    except OSError as error:
        # If an input could not be read, say which.
        name = "" if error.filename in (None, partial) else f"{error.filename}: "
        raise ImageError(f"cannot write {output}: {name}{error.strerror}") from error
    print(f"{output}: {image.name}, {image.packed_bytes} bytes, {image.unpacked_bytes} unpacked",
          file=sys.stderr)
    print(image.digest)


def main(arguments):
    if len(arguments) < 2:
        print("usage: image.py OUTPUT BUNDLE [LIBRARY...]", file=sys.stderr)
        return 1
    try:
        write(arguments[0], arguments[1], arguments[2:])
    except ImageError as error:
        print(f"satrap: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
