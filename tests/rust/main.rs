mod smoke { #[test] fn batches_empty_gives_none() { assert!(kbat::batches(&[]).next().is_none()); } }
