//! [`fields`]: the methods of a class around a value of the core.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Writes the methods of a class: a getter for each field, `to_dict` with all of them, and the others, in this order.
///
/// A field is a docstring, a name, a type, and how the value of the core contains it.
macro_rules! fields {
    (
        $class:ident {
            $($(#[$doc:meta])* $name:ident: $type:ty = |$core:ident| $value:expr;)*
        }
        $($methods:tt)*
    ) => {
        #[pymethods]
        impl $class {
            $(
                $(#[$doc])*
                #[getter]
                fn $name(&self) -> $type {
                    let $core = &self.0;
                    $value
                }
            )*

            /// Return the fields as a dictionary.
            fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
                let dict = pyo3::types::PyDict::new(py);
                $(
                    let value = pyo3::IntoPyObjectExt::into_bound_py_any(self.$name(), py)?;
                    dict.set_item(stringify!($name), $crate::python::runtime::fields::plain(value)?)?;
                )*
                Ok(dict)
            }

            $($methods)*
        }
    };
}

pub(crate) use fields;

/// Replaces objects with `to_dict` by their dictionaries, also in a list.
pub(crate) fn plain(value: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    if let Ok(list) = value.cast::<PyList>() {
        let items = list.iter().map(plain).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(value.py(), items)?.into_any());
    }
    match value.getattr_opt("to_dict")? {
        Some(to_dict) => to_dict.call0(),
        None => Ok(value),
    }
}

/// Counts by name, a dictionary in Python.
pub(crate) struct NamedCounts<const N: usize>(pub(crate) [(&'static str, u64); N]);

impl<'py, const N: usize> IntoPyObject<'py> for NamedCounts<N> {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        self.0.iter().try_for_each(|(name, count)| dict.set_item(name, count))?;
        Ok(dict)
    }
}
