package kbat.spark;

/** Exceptions that a signature does not allow. */
final class Failures {
    private Failures() {}

    /** Throws any exception as it is; callers write {@code throw} so that the compiler knows. */
    static RuntimeException unchecked(Throwable error) {
        return Failures.<RuntimeException>cast(error);
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> E cast(Throwable error) throws E {
        throw (E) error;
    }
}
