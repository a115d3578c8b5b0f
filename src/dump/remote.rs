//! The records of `__remote_log_metadata` as Java's `toString` shows them, which is all that `kafka-dump-log` prints.
//!
//! Source: `RemoteLogMetadataSerde`, `RemoteLogSegmentMetadata` and their relatives in Kafka.

use std::collections::BTreeMap;

use crate::dump::frame_fault::framed_fault;
use crate::format::record::Record;
use crate::internal::{Family, Value, framed};

/// Names of the states of a segment, by number.
const SEGMENT_STATES: [&str; 4] =
    ["COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED"];
/// Names of the states of a partition's deletion, by number.
const PARTITION_STATES: [&str; 3] =
    ["DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED"];
/// What Java 17 says about a null value.
const NULL_VALUE: &str = "Cannot invoke \"java.nio.ByteBuffer.remaining()\" because the return value of \
                          \"org.apache.kafka.common.record.internal.Record.value()\" is null";
/// The value of a missing field.
static NULL: Value<'static> = Value::Null;
const NO_STATE: &str = "state can not be null";

/// The text of a record, or Kafka's message about it.
pub(super) fn describe(record: &Record<'_>) -> String {
    let described = match record.value {
        None => Err(NULL_VALUE.to_owned()),
        Some(value) => framed(Family::Remote, value).map_err(|fault| framed_fault(&fault)).and_then(|message| {
            let fields = MessageFields(message.value());
            match message.type_id() {
                0 => fields.segment(),
                1 => fields.update(),
                2 => fields.deletion(),
                _ => fields.snapshot(),
            }
        }),
    };
    described.unwrap_or_else(|message| format!("Error at offset {}, skipping. {message}", record.offset))
}

type Text = Result<String, String>;

/// The fields of a message or struct.
struct MessageFields<'f>(&'f Value<'f>);

impl MessageFields<'_> {
    fn segment(&self) -> Text {
        let (start, end) = (self.int("startOffset"), self.int("endOffset"));
        if start < 0 {
            return Err(format!(
                "Unexpected start offset = {start}. StartOffset for a remote segment cannot be negative"
            ));
        }
        if end < start {
            return Err(format!(
                "Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than startOffset = \
                 {start}"
            ));
        }
        let epochs = self.epochs()?;
        Ok(format!(
            "RemoteLogSegmentMetadata{{remoteLogSegmentId={}, startOffset={start}, endOffset={end}, brokerId={}, \
             maxTimestampMs={}, eventTimestampMs={}, segmentLeaderEpochs={epochs}, segmentSizeInBytes={}, \
             customMetadata={}, state={}, txnIdxEmpty={}}}",
            self.segment_id(),
            self.int("brokerId"),
            self.int("maxTimestampMs"),
            self.int("eventTimestampMs"),
            self.int("segmentSizeInBytes"),
            self.custom_metadata(),
            self.segment_state()?,
            self.flag("txnIndexEmpty"),
        ))
    }

    fn update(&self) -> Text {
        Ok(format!(
            "RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={}, customMetadata={}, state={}, \
             eventTimestampMs={}, brokerId={}}}",
            self.segment_id(),
            self.custom_metadata(),
            self.segment_state()?,
            self.int("eventTimestampMs"),
            self.int("brokerId"),
        ))
    }

    fn deletion(&self) -> Text {
        let state = state(&PARTITION_STATES, self.int("remotePartitionDeleteState"));
        Ok(format!(
            "RemotePartitionDeleteMetadata{{topicPartition={}, state={}, eventTimestampMs={}, brokerId={}}}",
            self.partition(),
            state.ok_or("null")?,
            self.int("eventTimestampMs"),
            self.int("brokerId"),
        ))
    }

    fn snapshot(&self) -> Text {
        let state = self.segment_state()?;
        Ok(format!(
            "RemoteLogSegmentMetadataSnapshot{{segmentId={}, startOffset={}, endOffset={}, maxTimestampMs={}, \
             segmentLeaderEpochs={}, segmentSizeInBytes={}, customMetadata={}, state={state}, txnIdxEmpty={}}}",
            self.uuid("segmentId"),
            self.int("startOffset"),
            self.int("endOffset"),
            self.int("maxTimestampMs"),
            self.epochs()?,
            self.int("segmentSizeInBytes"),
            self.custom_metadata(),
            self.flag("txnIndexEmpty"),
        ))
    }

    fn segment_id(&self) -> String {
        let id = MessageFields(self.value("remoteLogSegmentId"));
        format!("RemoteLogSegmentId{{topicIdPartition={}, id={}}}", id.partition(), id.uuid("id"))
    }

    /// The partition as `<topic id>:<topic>-<number>`.
    fn partition(&self) -> String {
        let partition = MessageFields(self.value("topicIdPartition"));
        let topic = partition.value("name").as_text().unwrap_or_default();
        format!("{}:{topic}-{}", partition.uuid("id"), partition.int("partition"))
    }

    /// The start offsets of leader epochs, sorted by epoch; the last one counts if an epoch is repeated.
    fn epochs(&self) -> Text {
        let entries = self.value("segmentLeaderEpochs").as_array().unwrap_or_default();
        let epochs: BTreeMap<i64, i64> = entries
            .iter()
            .map(|entry| (MessageFields(entry).int("leaderEpoch"), MessageFields(entry).int("offset")))
            .collect();
        if epochs.is_empty() {
            return Err("segmentLeaderEpochs can not be null or empty".to_owned());
        }
        let shown: Vec<_> = epochs.iter().map(|(epoch, offset)| format!("{epoch}={offset}")).collect();
        Ok(format!("{{{}}}", shown.join(", ")))
    }

    fn custom_metadata(&self) -> String {
        match self.value("customMetadata").as_bytes() {
            Some(bytes) => format!("Optional[CustomMetadata{{{} bytes}}]", bytes.len()),
            None => "Optional.empty".to_owned(),
        }
    }

    fn segment_state(&self) -> Result<&'static str, String> {
        state(&SEGMENT_STATES, self.int("remoteLogSegmentState")).ok_or_else(|| NO_STATE.to_owned())
    }

    fn value(&self, name: &str) -> &Value<'_> {
        self.0.get(name).unwrap_or(&NULL)
    }

    fn int(&self, name: &str) -> i64 {
        self.value(name).as_int().unwrap_or_default()
    }

    fn flag(&self, name: &str) -> bool {
        self.value(name).as_bool().unwrap_or_default()
    }

    fn uuid(&self, name: &str) -> String {
        self.value(name).as_uuid().map(|uuid| uuid.to_string()).unwrap_or_default()
    }
}

fn state(names: &[&'static str], number: i64) -> Option<&'static str> {
    usize::try_from(number).ok().and_then(|number| names.get(number)).copied()
}
