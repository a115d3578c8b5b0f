"""Builds kbat-spark.jar: the classes of ``kbat/``, compiled for Java 8 with Spark 3.5's jars, and Rust's library.

```
java/kbat/**.java ──► ecj ──► classes ─┐
target/…/libkbat_jvm.so, one per platform ─┴──► python/kbat/spark/jars/kbat-spark.jar
```

Ivy fetches the Eclipse compiler and Spark's jars once into ``target/java/``. A Java 17 runtime runs both; no JDK is
needed. The same inputs make the same jar, byte by byte.

    python java/build.py --library target/release/libkbat.so
    python java/build.py --library linux-x86_64=x/libkbat_jvm.so --library macos-aarch64=y/libkbat_jvm.dylib
"""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

from ivy import Module, Request, UnavailableError, fetch, find_java

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "java" / "kbat"
TARGET = ROOT / "target" / "java"
JAR = ROOT / "python" / "kbat" / "spark" / "jars" / "kbat-spark.jar"

SPARK = "3.5.7"
ECJ = "3.38.0"
SCALA = "2.12.18"
HADOOP = "3.3.4"
SLF4J = "2.0.7"
KRYO = "4.0.2"
JSON4S = "3.7.0-M11"
"""The oldest line of Spark that the jar runs on, and what its signatures mention; this ecj runs on Java 17."""

DATE = (1980, 1, 1, 0, 0, 0)
"""The date of every entry, the first that the format can express."""

WARNINGS = "+unusedImport,unusedLocal,unusedPrivate,raw,unchecked,fallthrough,finally,resource"

MODULES = (
    Module(organisation="org.eclipse.jdt", name="ecj", version=ECJ),
    *(
        Module(organisation="org.apache.spark", name=f"spark-{name}_2.12", version=SPARK)
        for name in ("catalyst", "common-utils", "core", "sql", "sql-api", "unsafe")
    ),
    Module(organisation="org.apache.hadoop", name="hadoop-common", version=HADOOP),
    Module(organisation="org.scala-lang", name="scala-library", version=SCALA),
    Module(organisation="org.slf4j", name="slf4j-api", version=SLF4J),
    Module(organisation="com.esotericsoftware", name="kryo-shaded", version=KRYO),
    Module(organisation="org.json4s", name="json4s-ast_2.12", version=JSON4S),
)

LIBRARIES = {"linux": "libkbat_jvm.so", "macos": "libkbat_jvm.dylib"}


class BuildError(Exception):
    """The jar can't be built."""


def main() -> None:
    """Build the jar that the command line describes."""
    parser = argparse.ArgumentParser(description="Build kbat-spark.jar.")
    parser.add_argument(
        "--library",
        action="append",
        required=True,
        metavar="[PLATFORM=]PATH",
        help="the library of a platform, such as linux-x86_64; default: of this machine's",
    )
    parser.add_argument("--output", type=Path, default=JAR, help="the jar; default: the one that the wheel includes")
    arguments = parser.parse_args()
    try:
        build(arguments.output, [named(text) for text in arguments.library])
    except (BuildError, UnavailableError, OSError) as error:
        sys.exit(f"java/build.py: {error}")


def build(jar: Path, libraries: list[tuple[str, Path]]) -> None:
    """Compile the classes and write the jar.

    Raises:
        BuildError: The sources do not compile, or a platform is unknown or repeated.
        UnavailableError: Java or a jar is missing.
    """
    platforms = sorted(name for name, _ in libraries)
    if len(set(platforms)) < len(platforms):
        message = f"two libraries are of one platform: {', '.join(platforms)}"
        raise BuildError(message)
    entries = {f"kbat/native/{name}/{library_name(name)}": path.read_bytes() for name, path in libraries}
    entries["kbat/spark/jar.properties"] = f"version={version()}\nplatforms={', '.join(platforms)}\n".encode()
    entries["META-INF/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    with tempfile.TemporaryDirectory() as classes:
        compile_to(Path(classes))
        for path in Path(classes).rglob("*.class"):
            entries[path.relative_to(classes).as_posix()] = path.read_bytes()
    write(jar, entries)


def compile_to(classes: Path, sources: Path = SOURCES, *libraries: Path) -> None:
    """Compile the classes, which may use further jars, into a directory.

    Raises `BuildError` with the compiler's messages.
    """
    java = find_java()
    jars = {jar.name: jar for jar in compile_jars(java)}
    compiler = jars.pop(f"ecj-{ECJ}.jar")
    command = [java, "-jar", str(compiler), "-source", "8", "-target", "8", "-encoding", "UTF-8", "-proc:none"]
    command += [f"-warn:{WARNINGS}", "-failOnWarning", "-g:source,lines"]
    command += ["-classpath", ":".join(map(str, [*jars.values(), *libraries])), "-d", str(classes), str(sources)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - its own arguments
    if done.returncode:
        message = f"the classes do not compile\n{done.stdout}{done.stderr}"
        raise BuildError(message)


def compile_jars(java: str) -> list[Path]:
    """Return the compiler and the jars that the classes mention, fetched on the first call."""
    home = TARGET / f"spark-{SPARK}-ecj-{ECJ}"
    if not all((home / f"{module.name}-{module.version}.jar").exists() for module in MODULES):
        print(f"fetching Spark {SPARK}'s jars and ecj into {home} (once, about 55 MB)", file=sys.stderr)  # noqa: T201
        shutil.rmtree(home, ignore_errors=True)  # as an earlier version of this script left it
        fetch(java, Request(modules=MODULES, transitive=False), home, cache=TARGET / "ivy")
    return sorted(home.glob("*.jar"))


def write(jar: Path, entries: dict[str, bytes]) -> None:
    """Write a jar with these files, in order and with a fixed date; it exists only if it is complete."""
    manifest = f"Manifest-Version: 1.0\nImplementation-Title: kbat\nImplementation-Version: {version()}\n\n"
    jar.parent.mkdir(parents=True, exist_ok=True)
    scratch = jar.with_suffix(".tmp")
    with zipfile.ZipFile(scratch, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in [("META-INF/MANIFEST.MF", manifest.encode()), *sorted(entries.items())]:
            entry = zipfile.ZipInfo(name, DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # the same on every system
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    scratch.replace(jar)


def named(text: str) -> tuple[str, Path]:
    """Return the platform and path of an argument. Raises `BuildError` for an unknown platform."""
    name, equals, path = text.rpartition("=")
    name = name if equals else here()
    library_name(name)
    return name, Path(path)


def library_name(name: str) -> str:
    """Return the file name of a platform's library. Raises `BuildError` for an unknown platform."""
    system, _, machine = name.partition("-")
    if system not in LIBRARIES or not machine:
        message = f"unknown platform {name}: write {' or '.join(f'{known}-<machine>' for known in LIBRARIES)}"
        raise BuildError(message)
    return LIBRARIES[system]


def here() -> str:
    """Return the name of this machine's platform."""
    machine = platform.machine().lower()
    system = {"darwin": "macos"}.get(sys.platform, sys.platform)
    return f"{system}-{ {'amd64': 'x86_64', 'arm64': 'aarch64'}.get(machine, machine) }"


def version() -> str:
    """Return the version of the crate."""
    return str(tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["version"])


if __name__ == "__main__":
    main()
