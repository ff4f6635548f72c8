"""Where the servers of the tests have their data: each in a SQLite file or, when PAWL_TEST_POSTGRES names a PostgreSQL server
(tests/tools/with_postgres.py), each in a database of its own there. A test names its store by the file in both cases. When PAWL_BIN is
tests/tools/three_nodes.py every server is three nodes that share the database, and the database has several shards."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

import psycopg2

import every_shard

POSTGRES = os.environ.get("PAWL_TEST_POSTGRES")
SEVERAL_NODES = POSTGRES is not None and os.environ.get("PAWL_BIN", "").endswith("three_nodes.py")
SHARDS = 6 if SEVERAL_NODES else 1


class Databases:
    """A database per file. They are copies of one that pawl has already made a store of, which takes a third of the time."""

    def __init__(self, server, pawl):
        self.server, self.pawl = server, pawl
        self.template = f"template_{os.getpid()}"
        self.made = {}

    def url(self, file):
        if file not in self.made:
            self.drop_left()
            self.made[file] = self.make(self.name_of(file))
        return self.url_of(self.made[file])

    @staticmethod
    def name_of(file):
        return f"e{hashlib.sha256(str(file).encode()).hexdigest()[:20]}"

    def url_of(self, database):
        return re.sub(r"^(\w+://[^/]*)/[^?]*", rf"\1/{database}", self.server)

    def exists(self, database):
        return self.rows("SELECT 1 FROM pg_database WHERE datname = %s", database)

    def copy(self, source, file):
        self.drop_left()
        self.made[file] = self.make(self.name_of(file), self.made[source])

    def make(self, database, template=None):
        if not self.exists(self.template):
            self.make_template()
        if not self.exists(database):
            self.rows(f"CREATE DATABASE {database} TEMPLATE {template or self.template}")
        return database

    def make_template(self):
        """As `pawl serve` makes it, but for the number of shards."""
        self.rows(f"CREATE DATABASE {self.template}")
        env = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_")}
        for command in (["cluster", "init", "--shards", str(SHARDS)], ["tenant", "list"]):  # the second one opens the shards
            subprocess.run([self.pawl, *command, "--store", self.url_of(self.template)], check=True, capture_output=True, env=env)
        for shard in range(SHARDS):
            self.rows(f"DELETE FROM pawl_{shard}.secrets", database=self.template)  # every store makes its own
        if SHARDS > 1:
            self.rows(every_shard.MAKE, database=self.template)

    def drop_left(self):
        """Those of folders that are gone."""
        for file in [f for f in self.made if not f.parent.exists()]:
            self.rows(f"DROP DATABASE {self.made.pop(file)} WITH (FORCE)")

    def rows(self, sql, *args, database="postgres"):
        connection = psycopg2.connect(self.url_of(database))
        connection.autocommit = True  # databases are not made in transactions
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql, args or None)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()


class Stores:
    """What --store says for a file."""

    def __init__(self, pawl):
        self.databases = Databases(POSTGRES, pawl) if POSTGRES else None

    def url(self, file):
        file = pathlib.Path(file).absolute()
        return self.databases.url(file) if self.databases else f"sqlite:{file}"

    def copy(self, source, file):
        """The store of one file, which no server has open, becomes that of another one too."""
        if self.databases:
            self.databases.copy(source, file)
        else:
            shutil.copy(source, file)
