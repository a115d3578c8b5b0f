package kbat.spark;

import java.io.IOException;

/** An open stream of the library. After its close, a call is an error. */
final class StreamHandle {
    private long handle;

    /** Opens a stream, on the driver. */
    StreamHandle(String[] options, String[] session, String[] columns) {
        handle = Native.call(() -> Native.openStream(options, session, columns));
    }

    /** Calls the library with the handle. */
    synchronized <T> T call(Call<T> call) {
        if (handle == 0) {
            throw new IllegalStateException("kbat: the stream is stopped");
        }
        return Native.call(() -> call.run(handle));
    }

    /** Returns whether the stream is closed. */
    synchronized boolean isClosed() {
        return handle == 0;
    }

    /** Closes the stream. Calling it again has no effect. */
    synchronized void close() {
        if (handle != 0) {
            long open = handle;
            handle = 0;
            Native.closeStream(open);
        }
    }

    /** A call of the library. */
    interface Call<T> {
        T run(long handle) throws IOException;
    }
}
