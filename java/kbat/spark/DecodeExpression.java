package kbat.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.List;

/** The records of the record batches in a value or a part of it, as an array of structs. */
final class DecodeExpression extends ValueExpression {
    private static final long serialVersionUID = 1;

    private final BatchDecoder decoder;
    private final boolean isPart;

    private DecodeExpression(
            List<Expression> arguments, String settings, boolean isPart, BatchDecoder decoder, DataType type) {
        super(isPart ? "kbat_decode_part" : "kbat_decode", arguments, settings, type);
        this.decoder = decoder;
        this.isPart = isPart;
    }

    /** Decodes a value, with the columns of {@code kbat_decode}. */
    static DecodeExpression ofValue(List<Expression> arguments) {
        BatchDecoder decoder = new BatchDecoder("");
        return new DecodeExpression(arguments, "", false, decoder, decoder.type());
    }

    /** Decodes a part of a value with the settings in the second argument. */
    static DecodeExpression ofPart(List<Expression> arguments) {
        String settings = arguments.apply(1).eval(null).toString();
        BatchDecoder decoder = new BatchDecoder(settings);
        return new DecodeExpression(arguments, settings, true, decoder, decoder.type());
    }

    @Override
    String reject() {
        DataType given = argument(0).dataType();
        return isPart || given instanceof BinaryType
                ? null
                : "kbat_decode takes a binary column with the bytes of record batches, not " + given.catalogString();
    }

    @Override
    Expression with(List<Expression> arguments) {
        return new DecodeExpression(arguments, (String) settings(), isPart, decoder, dataType());
    }

    @Override
    Object evaluate(Object value) {
        return isPart ? decoder.decode((InternalRow) value) : decoder.decode((byte[]) value);
    }

    @Override
    String source(CodegenContext context, String value) {
        String reference = context.addReferenceObj("kbatDecoder", decoder, BatchDecoder.class.getName());
        return reference + ".decode(" + value + ")";
    }
}
