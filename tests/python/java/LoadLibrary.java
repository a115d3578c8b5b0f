import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Collections;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Loads the library of kbat's jar, the first argument, once for each other argument: a system property that is set
 * meanwhile. Prints a line for each: ok, or kbat's message. Each time is in a class loader of its own, as in a new JVM.
 */
public final class LoadLibrary {
    private LoadLibrary() {
    }

    public static void main(String[] arguments) throws Exception {
        URL jar = Paths.get(arguments[0]).toUri().toURL();
        for (String argument : Arrays.asList(arguments).subList(1, arguments.length)) {
            int equals = argument.indexOf('=');
            String name = argument.substring(0, equals);
            String before = System.getProperty(name);
            System.setProperty(name, argument.substring(equals + 1));
            System.out.println(load(jar));
            if (before == null) {
                System.clearProperty(name);
            } else {
                System.setProperty(name, before);
            }
        }
    }

    private static String load(URL jar) throws Exception {
        ClassLoader loader = new URLClassLoader(new URL[] {jar}, LoadLibrary.class.getClassLoader());
        Object source = loader.loadClass("kbat.DefaultSource").getDeclaredConstructor().newInstance();
        CaseInsensitiveStringMap options = new CaseInsensitiveStringMap(Collections.singletonMap("path", "/"));
        try {
            source.getClass().getMethod("inferSchema", CaseInsensitiveStringMap.class).invoke(source, options);
            return "ok";
        } catch (InvocationTargetException error) {
            return error.getCause().getMessage();
        }
    }
}
