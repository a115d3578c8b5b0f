package kbat.spark;

import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.execution.QueryExecutionException;

/**
 * An error of a task: corruption, a limit, a file that has changed, or a row that can't be written.
 *
 * <p>It has an error class, so that Spark 4 shows it as it is, and not as the cause of an aborted job; and PySpark knows
 * its superclass, and shows it without Java's part.
 */
public final class TaskException extends QueryExecutionException implements SparkThrowable {
    private static final long serialVersionUID = 1;

    TaskException(Exception cause) {
        super(cause.getMessage(), cause);
    }

    /** Returns the error class, under its name in Spark 4. */
    public String getCondition() {
        return "KBAT_READ_FAILED";
    }

    @Override
    public String getErrorClass() {
        return getCondition();
    }

    /** Returns null: only Spark's own error classes have a state. */
    @Override
    public String getSqlState() {
        return null;
    }

    /** Returns the message: Spark, which calls this from version 4.3 on, has no template of the error class. */
    public String getDefaultMessageTemplate() {
        return getMessage();
    }
}
