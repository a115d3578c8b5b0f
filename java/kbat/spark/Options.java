package kbat.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The options of a read, and the session's settings of S3. Their values may be secrets: no text has them all. */
final class Options {
    private static final Pattern USER_INFO = Pattern.compile("://[^/@]*@");
    private static final String HIDDEN = "(hidden)";

    private final Map<String, String> given;
    private final String[] session;

    /** Takes the options of a read, on the driver. */
    Options(CaseInsensitiveStringMap options) {
        given = new TreeMap<>(options.asCaseSensitiveMap()); // in order, so that equal reads have equal errors
        given.keySet().removeIf(name -> name.toLowerCase(Locale.ROOT).startsWith(ParquetJob.PREFIX));
        session = S3aSettings.ofSession();
    }

    /** Returns names and values, as the user wrote them. */
    String[] pairs() {
        List<String> pairs = new ArrayList<>();
        given.forEach((name, value) -> {
            pairs.add(name);
            pairs.add(value);
        });
        return pairs.toArray(new String[0]);
    }

    /** Returns the storage settings of the session, as names and values. */
    String[] session() {
        return session.clone();
    }

    /** Returns whether an option is set. */
    boolean has(String option) {
        return value(option) != null;
    }

    /** Returns the value of an option, null if it is not set. */
    String value(String option) {
        for (Map.Entry<String, String> entry : given.entrySet()) {
            if (entry.getKey().equalsIgnoreCase(option)) {
                return entry.getValue();
            }
        }
        return null;
    }

    /** Returns the paths, for people. */
    String paths() {
        String path = value("path");
        String paths = value("paths");
        return withoutUser(path == null ? String.valueOf(paths) : paths == null ? path : path + ", " + paths);
    }

    /** Returns all options other than the paths, for people. */
    String others() {
        List<String> shown = new ArrayList<>();
        given.forEach((name, value) -> {
            String lower = name.toLowerCase(Locale.ROOT);
            if (lower.startsWith("storage.") || lower.equals("encryptionkeys")) {
                shown.add(name + "=" + HIDDEN);
            } else if (!lower.equals("path") && !lower.equals("paths") && !lower.equals(Face.OPTION)) {
                shown.add(name + "=" + withoutUser(value));
            }
        });
        return String.join(", ", shown);
    }

    private static String withoutUser(String text) {
        return USER_INFO.matcher(text).replaceAll("://");
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Options
                && given.equals(((Options) other).given)
                && Arrays.equals(session, ((Options) other).session);
    }

    @Override
    public int hashCode() {
        return 31 * given.hashCode() + Arrays.hashCode(session);
    }
}
