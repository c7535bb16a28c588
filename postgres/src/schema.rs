//! The tables of forge in a database, and the parts that statements share. Specified in
//! `docs/format.md`; both must change together.

use forge_store::store::database::LogPosition;
use std::time::Duration;

/// The settings with which the commit of a transaction waits until it is durable, also on the
/// standbys that the database waits for. A warning reports that an administrator has ended the
/// wait, so warnings are turned on for this transaction.
macro_rules! wait_for_commit {
    () => {
        "set_config('synchronous_commit',
    case when current_setting('synchronous_commit') in ('off', 'local') then 'on'
    else current_setting('synchronous_commit') end, true),
  set_config('client_min_messages', 'warning', true)"
    };
}
pub(crate) use wait_for_commit;

/// Converts a position to a number of the database. Greater positions do not occur.
pub(crate) fn number(position: LogPosition) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

/// Converts a duration to the text of a setting: whole milliseconds, at least one.
pub(crate) fn milliseconds(timeout: Duration) -> String {
    // Zero would mean no limit.
    format!("{}ms", timeout.as_millis().clamp(1, i32::MAX as u128))
}

/// Converts a number of the database to a position.
pub(crate) fn position(number: i64) -> LogPosition {
    LogPosition::try_from(number).unwrap_or_default()
}

/// The version of the tables.
pub(crate) const VERSION: i32 = 1;

/// Creates the tables. In rows that were not replaced, `until` is the greatest number. A name has
/// one first shard, so two processes cannot create different numbers of shards.
///
/// Frames and values are compressed already where that helps, so the database does not compress
/// them. It takes no samples of them for its statistics, which a purge does not reach.
pub(crate) const CREATE: &str = "
begin;
create schema if not exists forge;
create table if not exists forge.store (
  id bytea primary key,
  name text not null unique,
  version integer not null,
  marker text not null,
  created timestamptz not null default now()
);
create unique index if not exists store_first_shard
  on forge.store (regexp_replace(name, '-of-[0-9]+$', '')) where name ~ '/0-of-[0-9]+$';
create table if not exists forge.log (
  store bytea primary key references forge.store (id) on delete cascade,
  start bigint not null,
  stop bigint not null,
  hash bytea not null
) with (fillfactor = 50);
create table if not exists forge.frame (
  store bytea not null references forge.store (id) on delete cascade,
  position bigint not null,
  stop bigint not null,
  hash bytea not null,
  begins_segment boolean not null,
  bytes bytea not null,
  primary key (store, position)
);
alter table forge.frame alter column bytes set storage external,
  alter column bytes set statistics 0;
create table if not exists forge.index (
  store bytea primary key references forge.store (id) on delete cascade,
  generation bigint not null default 0,
  position bigint not null default 0,
  oldest bigint not null default 0,
  epoch bigint not null default 0,
  leased_until timestamptz not null default '-infinity',
  dirty boolean not null default false,
  purged_rows oid,
  purged_frames oid
) with (fillfactor = 50);
create table if not exists forge.generation (
  store bytea not null references forge.store (id) on delete cascade,
  number bigint not null,
  epoch bigint not null,
  published timestamptz not null,
  primary key (store, number)
);
create table if not exists forge.row (
  store bytea not null references forge.store (id) on delete cascade,
  tbl smallint not null,
  key bytea not null,
  since bigint not null,
  until bigint not null default 9223372036854775807,
  value bytea not null,
  primary key (store, tbl, key, since)
);
alter table forge.row alter column value set storage external,
  alter column value set statistics 0;
create index if not exists row_closed on forge.row (store, until)
  where until < 9223372036854775807;
commit;
";
