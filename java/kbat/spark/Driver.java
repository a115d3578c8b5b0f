package kbat.spark;

/** What Spark's own threads on the driver can do with this jar. */
final class Driver {
    /** Spark's thread that prepares the UI; all such threads have the class loader of the session's start. */
    private static final String THREAD = "spark-listener-group-appStatus";

    private Driver() {}

    /**
     * Returns whether these threads know the classes of this jar. They do not if it was added to a session later, by
     * {@code ADD JAR} or as an artifact. A task's error of an unknown class then loses its message, and the UI logs a
     * warning for each metric of an unknown class.
     */
    static boolean knowsJar() {
        return Checked.KNOWS_JAR;
    }

    private static final class Checked {
        static final boolean KNOWS_JAR = check();

        private static boolean check() {
            for (Thread thread : Thread.getAllStackTraces().keySet()) {
                if (thread.getName().equals(THREAD) && thread.getContextClassLoader() != null) {
                    try {
                        Class.forName(TaskException.class.getName(), false, thread.getContextClassLoader());
                    } catch (ClassNotFoundException error) {
                        return false;
                    }
                }
            }
            return true;
        }
    }
}
