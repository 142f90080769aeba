# The server, for its file or for PostgreSQL (docs/containers.md): docker build -t forq-trio .
# PYTHON: a base with Python 3.11 or newer as python3, with venv.
ARG PYTHON=python:3.13-slim

FROM ${PYTHON} AS build
COPY LICENSE README.md pyproject.toml /src/
COPY forq_trio /src/forq_trio
COPY pyspark_forq /src/pyspark_forq
# pip compiles here what each start would compile again, because the root is read-only later. Tests of libraries are left out.
RUN python3 -m venv /opt/forq \
    && /opt/forq/bin/pip install --no-cache-dir --disable-pip-version-check '/src[server,postgres]' \
    && /opt/forq/bin/pip uninstall --yes --quiet setuptools pip \
    && find /opt/forq -type d \( -name tests -o -name _tests \) -prune -exec rm -r {} +

FROM ${PYTHON}
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="forq-trio" \
      org.opencontainers.image.description="A durable, instant, self-hosted message queue" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/forq /opt/forq
# Without useradd, which not every base has.
RUN echo 'forq:x:10001:' >> /etc/group \
    && echo 'forq:x:10001:10001::/var/lib/forq:/usr/sbin/nologin' >> /etc/passwd \
    && install -d -o 10001 -g 10001 -m 700 /var/lib/forq
# XDG_DATA_HOME makes /var/lib/forq/forq.db the default database. FORQ_DB_PATH would do so, too, but then a server with
# FORQ_DB_URL would not start.
ENV PATH="/opt/forq/bin:${PATH}" \
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
