# The server, for its file or for PostgreSQL (docs/containers.md): docker build -t forq-trio .
# PYTHON: a base on Debian 12 or newer with Python 3.11 or newer as python3, with venv, ca-certificates and tzdata.
ARG PYTHON=python:3.13-slim

FROM ${PYTHON} AS build
COPY LICENSE README.md pyproject.toml /src/
COPY forq_trio /src/forq_trio
COPY pyspark_forq /src/pyspark_forq
# pip compiles here what each start would compile again, because the root is read-only later. Tests of libraries are left
# out, and SQLite's own programs, which apsw brings.
RUN python3 -m venv /opt/forq \
    && /opt/forq/bin/pip install --no-cache-dir --disable-pip-version-check '/src[server,postgres]' \
    && /opt/forq/bin/pip uninstall --yes --quiet setuptools pip \
    && find /opt/forq -type d \( -name tests -o -name _tests -o -name sqlite_extra_binaries \) -prune -exec rm -r {} +
COPY deploy/image /src/deploy/image
# The rest of the image: Python and what it and the libraries link to, instead of the whole base.
RUN python3 /src/deploy/image/root.py /image /opt/forq \
    && echo 'root:x:0:0::/root:/bin/sh' > /image/etc/passwd \
    && echo 'forq:x:10001:10001::/var/lib/forq:/usr/sbin/nologin' >> /image/etc/passwd \
    && printf 'root:x:0:\nforq:x:10001:\n' > /image/etc/group \
    && install -d -o 10001 -g 10001 -m 700 /image/var/lib/forq

FROM scratch
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="forq-trio" \
      org.opencontainers.image.description="A durable, instant, self-hosted message queue" \
      org.opencontainers.image.licenses="MIT AND 0BSD AND OFL-1.1" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /image /
COPY --from=build /opt/forq /opt/forq
# XDG_DATA_HOME makes /var/lib/forq/forq.db the default database. FORQ_DB_PATH would do so, too, but then a server with
# FORQ_DB_URL would not start.
ENV PATH=/opt/forq/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    XDG_DATA_HOME=/var/lib \
    FORQ_API_ADDR=:8080 \
    FORQ_UI_ADDR=:8081
USER 10001:10001
WORKDIR /var/lib/forq
VOLUME ["/var/lib/forq"]
EXPOSE 8080 8081
# A migration of a large file may take minutes, before which nothing answers.
HEALTHCHECK --interval=30s --timeout=10s --start-period=10m --retries=3 CMD ["/opt/forq/bin/forq", "health"]
ENTRYPOINT ["/opt/forq/bin/forq"]
CMD ["serve"]
