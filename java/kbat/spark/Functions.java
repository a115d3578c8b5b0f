package kbat.spark;

import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Tuple3;
import scala.collection.Seq;

/** The SQL functions of the jar. */
public final class Functions {
    /**
     * An option of a read that registers functions when its schema is requested, and has no rows. A client of Spark
     * Connect can't call Java, but the server infers schemas in the client's session.
     */
    static final String OPTION = "kbat.functions";

    /** What Spark calls functions that a jar registers. */
    private static final String SOURCE = "java_udf";

    private Functions() {}

    /** Adds the functions for users to each session that is built with these extensions. */
    public static void inject(SparkSessionExtensions session) {
        for (Function function : forUsers()) {
            session.injectFunction(new Tuple3<>(
                    new FunctionIdentifier(function.name), function.info(), function.builder()));
        }
    }

    /** Registers the functions for users in a running session, as temporary functions. */
    public static void register(FunctionRegistry session) {
        register(session, forUsers());
    }

    /** Registers the functions that {@code kbat.spark.decode} and {@code encode} use. */
    public static void registerInternal(FunctionRegistry session) {
        register(session, internal());
    }

    /**
     * Registers functions in the active session, and returns a schema with their names.
     *
     * @param which {@code users}, {@code internal} or {@code none}
     */
    static StructType register(String which) {
        List<Function> functions = which.equals("users")
                ? forUsers()
                : which.equals("internal") ? internal() : Collections.<Function>emptyList();
        StructType names = new StructType();
        if (!functions.isEmpty()) {
            register(ofActiveSession(), functions);
        }
        for (Function function : functions) {
            names = names.add(function.name, DataTypes.BinaryType);
        }
        return names;
    }

    private static FunctionRegistry ofActiveSession() {
        Object session = activeSession();
        try {
            // by name, because it is a method of different classes in Spark 3.5 and 4
            Object state = session.getClass().getMethod("sessionState").invoke(session);
            return ((SessionState) state).functionRegistry();
        } catch (InvocationTargetException error) {
            throw Failures.unchecked(error.getCause());
        } catch (ReflectiveOperationException error) {
            throw new UnsupportedOperationException("kbat: this Spark's registry of functions is not known", error);
        }
    }

    /** Returns the session, which is not this class's to close. */
    private static Object activeSession() {
        return SparkSession.active();
    }

    private static List<Function> forUsers() {
        return Arrays.asList(
                new Function(
                        "kbat_decode",
                        "(bytes)",
                        "Returns the records of the record batches in a binary value, as an array of structs.",
                        1,
                        1,
                        DecodeExpression::ofValue),
                new Function(
                        "kbat_encode",
                        "(records[, compression])",
                        "Encodes an array of structs as record batches.",
                        1,
                        2,
                        EncodeExpression::new));
    }

    private static List<Function> internal() {
        return Arrays.asList(
                new Function(
                        "kbat_parts",
                        "(bytes, isDivided)",
                        "Divides a large value.",
                        2,
                        2,
                        PartsExpression::new),
                new Function(
                        "kbat_decode_part",
                        "(part, settings)",
                        "Decodes a part of a value.",
                        2,
                        2,
                        DecodeExpression::ofPart),
                new Function(
                        "kbat_struct_bytes",
                        "(struct, type)",
                        "Returns the bytes of a struct.",
                        2,
                        2,
                        StructExpression::toBytes),
                new Function(
                        "kbat_struct",
                        "(bytes, type)",
                        "Returns the struct of bytes.",
                        2,
                        2,
                        StructExpression::ofBytes));
    }

    private static void register(FunctionRegistry session, List<Function> functions) {
        for (Function function : functions) {
            session.createOrReplaceTempFunction(function.name, function.builder(), SOURCE);
        }
    }

    /** A function: its name and texts, the numbers of arguments, and how to make an expression of them. */
    private static final class Function {
        private final String name;
        private final String signature;
        private final String text;
        private final int least;
        private final int most;
        private final Builder builder;

        Function(String name, String signature, String text, int least, int most, Builder builder) {
            this.name = name;
            this.signature = signature;
            this.text = text;
            this.least = least;
            this.most = most;
            this.builder = builder;
        }

        ExpressionInfo info() {
            String usage = "_FUNC_" + signature + " - " + text;
            return new ExpressionInfo(
                    Functions.class.getName(), null, name, usage, "", "", "", "", "", "", SOURCE);
        }

        Function1<Seq<Expression>, Expression> builder() {
            return this::build;
        }

        /** Builds the expression. The types of the arguments may not be known. */
        private Expression build(Seq<Expression> given) {
            int count = given.length();
            if (count < least || count > most) {
                throw new IllegalArgumentException(
                        "kbat: write " + name + signature + "; this call has " + count + " arguments");
            }
            return builder.build(given.toList());
        }
    }

    private interface Builder {
        Expression build(scala.collection.immutable.List<Expression> arguments);
    }
}
