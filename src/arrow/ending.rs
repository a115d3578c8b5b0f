//! [`ends_after_error`]: the end of the iterators over Arrow batches.

/// Implements the iterator of a type with a field `ended`: what its method `advance` returns, until the first error.
macro_rules! ends_after_error {
    ($scan:ty) => {
        impl Iterator for $scan {
            type Item = crate::error::Result<arrow_array::RecordBatch>;

            fn next(&mut self) -> Option<Self::Item> {
                if self.ended {
                    return None;
                }
                let next = self.advance().transpose();
                self.ended = !matches!(next, Some(Ok(_)));
                next
            }
        }
    };
}

pub(crate) use ends_after_error;
