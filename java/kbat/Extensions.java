package kbat;

import kbat.spark.Functions;
import org.apache.spark.sql.SparkSessionExtensions;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** The SQL functions {@code kbat_decode} and {@code kbat_encode}: {@code --conf spark.sql.extensions=kbat.Extensions}. */
public final class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
    @Override
    public BoxedUnit apply(SparkSessionExtensions session) {
        Functions.inject(session);
        return BoxedUnit.UNIT;
    }
}
