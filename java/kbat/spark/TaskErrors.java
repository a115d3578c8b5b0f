package kbat.spark;

import org.apache.spark.TaskContext;

/** How tasks raise errors of files and values, which depends on what the driver knows. */
enum TaskErrors {
    /** As a {@link TaskException}. */
    SHOWN_AS_THEY_ARE,
    /** As the exceptions of the library, whose classes are Java's: Spark shows them as causes of an aborted job. */
    PLAIN;

    /** Returns what suits this driver. */
    static TaskErrors forDriver() {
        return Driver.knowsJar() ? SHOWN_AS_THEY_ARE : PLAIN;
    }

    /** Throws an error; callers write {@code throw} so that the compiler knows. */
    RuntimeException of(Exception error) {
        throw Failures.unchecked(this == PLAIN ? error : new TaskException(error));
    }

    /** Throws an error of a value, which Spark may evaluate on the driver. */
    RuntimeException ofValue(Exception error) {
        throw TaskContext.get() == null ? Failures.unchecked(new TaskException(error)) : of(error);
    }
}
