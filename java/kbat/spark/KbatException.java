package kbat.spark;

import java.io.IOException;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import scala.Option;
import scala.Some;
import scala.collection.immutable.Map$;

/**
 * An error of files while a read is planned: a path that does not exist, or a log that can't be read.
 *
 * <p>It is an AnalysisException, as such errors of Spark's own sources are, which PySpark shows without Java's part.
 */
public final class KbatException extends AnalysisException {
    private static final long serialVersionUID = 1;

    KbatException(IOException cause) {
        super(
                cause.getMessage(),
                Option.empty(),
                Option.empty(),
                new Some<>(cause),
                Option.empty(),
                Map$.MODULE$.empty(),
                new QueryContext[0]);
    }
}
