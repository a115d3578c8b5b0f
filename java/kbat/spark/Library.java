package kbat.spark;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Locale;
import java.util.Properties;

/**
 * Loads the Rust library, once per class loader.
 *
 * <pre>
 *   kbat-spark.jar!/kbat/native/linux-x86_64/libkbat_jvm.so ──► a private temporary file ──► System.load, and deleted
 * </pre>
 */
final class Library {
    /** A system property: the directory for the temporary file. */
    private static final String TEMPDIR = "kbat.tempdir";
    /** A system property: a library to load instead of the jar's, for tests. */
    private static final String LIBRARY = "kbat.library";

    private static boolean isLoaded;
    private static String failure;

    private Library() {}

    /**
     * Loads the library if it is not loaded.
     *
     * @throws IllegalStateException if it can't be loaded here, with the same message for each call
     */
    static synchronized void load() {
        if (isLoaded) {
            return;
        }
        if (failure == null) {
            failure = tryLoad();
        }
        if (failure != null) {
            throw new IllegalStateException(failure);
        }
        isLoaded = true;
    }

    /** Loads the library and returns null, or why that is not possible. */
    private static String tryLoad() {
        try {
            String path = System.getProperty(LIBRARY);
            Properties jar = jarProperties();
            String reason = path == null ? unpackAndLoad(jar) : load(Paths.get(path).toAbsolutePath());
            if (reason != null) {
                return reason;
            }
            String ours = jar.getProperty("version");
            String theirs = Native.version();
            return theirs.equals(ours)
                    ? null
                    : "kbat: the library is of version " + theirs + ", and the jar is of version " + ours
                            + ": unset the system property " + LIBRARY;
        } catch (IOException error) {
            return "kbat: the library can't be unpacked to " + directory() + ": " + error
                    + "; " + otherDirectory();
        }
    }

    private static String unpackAndLoad(Properties jar) throws IOException {
        String platform = platform();
        String name = System.mapLibraryName("kbat_jvm");
        try (InputStream content = Library.class.getResourceAsStream("/kbat/native/" + platform + "/" + name)) {
            if (content == null) {
                return "kbat: the jar has no library for " + platform + ", only for "
                        + jar.getProperty("platforms") + ": install kbat's wheel for this platform";
            }
            // the name is random, and only this user can read it
            Path directory = Files.createTempDirectory(directory(), "kbat-");
            Path file = directory.resolve(name);
            try {
                Files.copy(content, file);
                return load(file);
            } finally {
                // a loaded library needs no file, and so a killed process leaves none
                Files.deleteIfExists(file);
                Files.deleteIfExists(directory);
            }
        }
    }

    private static String load(Path file) {
        try {
            System.load(file.toString());
            return null;
        } catch (UnsatisfiedLinkError error) {
            String message = "kbat: the library can't be loaded: " + error.getMessage();
            if (message.contains("failed to map segment") || message.contains("Operation not permitted")) {
                return message + "; " + file.getParent().getParent()
                        + " forbids execution (mount option noexec): " + otherDirectory();
            }
            return message;
        }
    }

    private static String otherDirectory() {
        return "name another directory with -D" + TEMPDIR + "=/path in spark.driver.extraJavaOptions and "
                + "spark.executor.extraJavaOptions";
    }

    private static Path directory() {
        return Paths.get(System.getProperty(TEMPDIR, System.getProperty("java.io.tmpdir", File.separator + "tmp")));
    }

    private static Properties jarProperties() throws IOException {
        Properties properties = new Properties();
        try (InputStream content = Library.class.getResourceAsStream("/kbat/spark/jar.properties")) {
            if (content != null) {
                properties.load(content);
            }
        }
        return properties;
    }

    /** Returns the name of this platform in the jar, such as linux-x86_64. */
    private static String platform() {
        String system = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
        String machine = System.getProperty("os.arch", "").toLowerCase(Locale.ROOT);
        String os = system.startsWith("mac") ? "macos" : system.startsWith("windows") ? "windows" : system;
        String arch = machine.equals("amd64") ? "x86_64" : machine.equals("arm64") ? "aarch64" : machine;
        return os + "-" + arch;
    }
}
