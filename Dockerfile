# viewfold for a nightly job, and for the page of `viewfold ui`; see "In a container" in docs/commands.md.
#
#   docker build -t viewfold .
#   docker build -t viewfold --build-arg EXTRAS=all .
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
ARG EXTRAS=excel,parquet,remote,ui
WORKDIR /build
RUN python -m venv /opt/viewfold
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/viewfold/bin/pip install --no-cache-dir --constraint constraints.txt ".[${EXTRAS}]"

FROM python:${PYTHON}-slim
# States belong to a user without rights, whose number can be chosen to fit that of a folder.
ARG USER_ID=1000
RUN useradd --no-log-init --create-home --uid ${USER_ID} viewfold \
    && install --directory --owner viewfold /data
COPY --from=build /opt/viewfold /opt/viewfold
ENV PATH=/opt/viewfold/bin:$PATH
USER ${USER_ID}
WORKDIR /data
VOLUME /data
ENTRYPOINT ["viewfold"]
CMD ["--help"]
