"""Tables of pgq's layout: made as often as one likes, dropped whole, and checked by name."""

import psycopg
import pytest
from psycopg import sql

from forq_trio import pgq
from forq_trio.pgq.layout import COLUMNS, has_old_function

INDEXES = ("created_at_idx", "processed_at_null_idx", "scheduled_for_idx", "metadata_idx")


def indexes_of(connection: psycopg.Connection, table: str) -> set[str]:
    found = connection.execute("SELECT indexname FROM pg_indexes WHERE tablename = %s", [table])
    return {name for (name,) in found}


def is_there(connection: psycopg.Connection, table: str) -> bool:
    found = connection.execute("SELECT count(*) FROM pg_tables WHERE tablename = %s", [table]).fetchone()
    return found == (1,)


@pytest.mark.parametrize("name", ["orders", "%s {table}", "x" * 41])
def test_a_table_has_pgqs_columns_and_indexes_and_can_be_made_twice(connection, name) -> None:
    for _ in range(2):
        pgq.create_table(connection, name)
    pgq.check_table(connection, name)
    assert {f"{name}_{each}" for each in INDEXES} <= indexes_of(connection, name)
    found = connection.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_name = %s ORDER BY ordinal_position",
        [name],
    )
    assert tuple(column for (column,) in found) == COLUMNS
    assert pgq.drop_table(connection, name)
    assert not is_there(connection, name)
    assert indexes_of(connection, name) == set()


def test_what_is_not_there_is_not_dropped(connection) -> None:
    assert not pgq.drop_table(connection, "never made")


def test_making_a_table_again_keeps_its_messages(connection, table, rows) -> None:
    (id,) = pgq.publish(connection, table, pgq.Message({"a": 1}))
    pgq.create_table(connection, table)
    assert rows.one()["id"] == id


def test_a_table_is_made_within_the_transaction_of_the_caller(connection) -> None:
    with connection.transaction(force_rollback=True):
        pgq.create_table(connection, "rolled back")
    assert not is_there(connection, "rolled back")


@pytest.mark.parametrize("name", ["", "x" * 42, "ü" * 21, "nul\0", "half \ud800"])
def test_a_name_without_space_for_its_indexes_is_refused(connection, name) -> None:
    with pytest.raises(pgq.InvalidTableName):
        pgq.create_table(connection, name)


def test_a_table_of_another_kind_is_refused_and_stays_as_it_is(connection) -> None:
    connection.execute("CREATE TABLE accounts (id uuid, payload jsonb)")
    with pytest.raises(pgq.WrongTable, match="'accounts' lacks columns: created_at, started_at"):
        pgq.create_table(connection, "accounts")
    assert indexes_of(connection, "accounts") == set()


def test_a_check_names_every_missing_column_and_index(connection, rows, table) -> None:
    rows.run("ALTER TABLE {} DROP COLUMN error_detail, DROP COLUMN metadata")
    connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(f"{table}_created_at_idx")))
    with pytest.raises(pgq.WrongTable) as raised:
        pgq.check_table(connection, table)
    assert raised.value.columns == ("error_detail", "metadata")
    assert raised.value.indexes == ("created_at", "metadata")
    assert str(raised.value).endswith(
        "lacks columns: error_detail, metadata; indexes on: created_at, metadata"
    )


def test_one_missing_column_is_enough(connection, rows, table) -> None:
    rows.run("ALTER TABLE {} DROP COLUMN started_at")
    with pytest.raises(pgq.WrongTable, match=r"lacks columns: started_at$"):
        pgq.check_table(connection, table)


def test_a_table_that_is_not_there_is_named(connection) -> None:
    with pytest.raises(pgq.NoTable, match="there is no table 'nowhere' in the database"):
        pgq.check_table(connection, "nowhere")


def test_more_columns_and_indexes_are_fine(connection, rows, table) -> None:
    rows.run("ALTER TABLE {} ADD COLUMN tenant text DEFAULT 'all'")
    rows.run("CREATE INDEX ON {} (tenant)")
    pgq.check_table(connection, table)


def test_the_trigger_is_only_where_it_is_wanted(connection) -> None:
    pgq.create_table(connection, "quiet", notify=False)
    triggers = "SELECT count(*) FROM pg_trigger WHERE tgrelid = '\"quiet\"'::regclass"
    assert connection.execute(triggers).fetchone() == (0,)
    for _ in range(2):
        pgq.create_table(connection, "quiet")
    assert connection.execute(triggers).fetchone() == (1,)


def test_an_old_function_of_the_trigger_is_noticed(connection) -> None:
    body = "BEGIN PERFORM pg_notify('forq_pgq', TG_TABLE_NAME); RETURN NULL; END"
    with connection.transaction(force_rollback=True):  # all tables of the database share the function
        pgq.create_table(connection, "newer")
        assert not has_old_function(connection, "newer")
        connection.execute(
            f"CREATE OR REPLACE FUNCTION forq_pgq_notify() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$"
        )
        assert has_old_function(connection, "newer")
        pgq.create_table(connection, "silent", notify=False)
        assert not has_old_function(connection, "silent")
        pgq.create_table(connection, "newer")
        assert not has_old_function(connection, "newer")


def test_a_role_makes_a_table_beside_those_of_another(connection) -> None:
    """The trigger's function belongs to who made the first table."""
    pgq.create_table(connection, "of the first")
    with connection.transaction(force_rollback=True):
        connection.execute("CREATE ROLE second")
        connection.execute("GRANT USAGE, CREATE ON SCHEMA public TO second")
        connection.execute("SET LOCAL ROLE second")
        pgq.create_table(connection, "of the second")
        pgq.publish(connection, "of the second", pgq.Message({}))


def test_a_table_that_the_role_may_not_use_is_told(connection, table, rows) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute("CREATE ROLE stranger")
        rows.run("GRANT SELECT ON {} TO stranger")
        connection.execute("SET LOCAL ROLE stranger")
        with pytest.raises(pgq.WrongTable, match="may not INSERT, UPDATE on the table"):
            pgq.check_table(connection, table)
        connection.execute("RESET ROLE")
        rows.run("GRANT INSERT, UPDATE ON {} TO stranger")
        connection.execute("SET LOCAL ROLE stranger")
        pgq.check_table(connection, table)
