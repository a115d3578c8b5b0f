package kbat.spark;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Warnings to users, in Spark's log. */
final class Warnings {
    private static final Logger LOGGER = LoggerFactory.getLogger("kbat");

    private Warnings() {}

    static void log(String warning) {
        LOGGER.warn(warning);
    }

    /** Logs the warnings of this thread's calls of the library since the last call. */
    static void logAll() {
        for (String warning : Native.takeWarnings()) {
            log(warning);
        }
    }
}
