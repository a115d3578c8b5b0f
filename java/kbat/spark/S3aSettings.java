package kbat.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.internal.SQLConf;

/** The session's settings {@code spark.hadoop.fs.s3a.*}, as options of object_store. */
final class S3aSettings {
    private static final String HADOOP = "spark.hadoop.fs.s3a.";
    /** Hadoop's name for the endpoint of the region. */
    private static final String CENTRAL_ENDPOINT = "s3.amazonaws.com";

    private final SQLConf conf = SQLConf.get();
    private final List<String> pairs = new ArrayList<>();

    private S3aSettings() {}

    /** Returns names and values; empty if the session has no such settings. */
    static String[] ofSession() {
        S3aSettings settings = new S3aSettings();
        settings.take("access.key", "access_key_id");
        settings.take("secret.key", "secret_access_key");
        settings.take("session.token", "session_token");
        settings.take("endpoint.region", "region");
        settings.takeEndpoint();
        return settings.pairs.toArray(new String[0]);
    }

    private void take(String theirs, String ours) {
        String value = setting(theirs);
        if (!value.isEmpty()) {
            add(ours, value);
        }
    }

    private void takeEndpoint() {
        String endpoint = setting("endpoint");
        int rest = endpoint.indexOf("://");
        String host = rest < 0 ? endpoint : endpoint.substring(rest + 3);
        boolean hasEndpoint = !host.isEmpty() && !host.equals(CENTRAL_ENDPOINT);
        if (hasEndpoint) {
            String scheme = setting("connection.ssl.enabled").equalsIgnoreCase("false") ? "http" : "https";
            add("endpoint", rest < 0 ? scheme + "://" + endpoint : endpoint);
        }
        String isPathStyle = setting("path.style.access").toLowerCase(Locale.ROOT);
        if (!isPathStyle.isEmpty()) {
            // with an endpoint, object_store only knows paths, which every store accepts
            boolean isVirtual = isPathStyle.equals("false") && !hasEndpoint;
            add("virtual_hosted_style_request", String.valueOf(isVirtual));
        }
    }

    private void add(String name, String value) {
        pairs.add(name);
        pairs.add(value);
    }

    private String setting(String name) {
        return conf.getConfString(HADOOP + name, "").trim();
    }
}
