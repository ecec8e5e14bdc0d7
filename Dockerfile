# EveryTurn with its embedded model.
#
#   docker build -t everyturn .
#   docker run --rm -it -v everyturn:/data everyturn python -m db user add YOUR-NAME --admin
#   docker run --rm --init -p 127.0.0.1:8501:8501 -v everyturn:/data everyturn
#
# then open http://127.0.0.1:8501 and sign in. A container cannot know who reaches its port, so it
# serves nothing until somebody may sign in (docs/team.md).
#
# pip takes torch's usual Linux build, which brings CUDA along (several GB). For an NVIDIA GPU add
# `--gpus all` to `docker run`. Without a GPU a much smaller image comes from torch's CPU index,
# whose address stands on PyTorch's "Get started" page:
#
#   docker build -t everyturn --build-arg PIP_EXTRA_INDEX_URL=<the CPU index> .
#
# To keep the data in a folder of the host, mount it and run as its owner:
# -v "$PWD/data:/data" --user "$(id -u):$(id -g)".

FROM python:3.11-slim

# Where else pip may look for wheels (see above); pip reads it from the environment.
ARG PIP_EXTRA_INDEX_URL=

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

WORKDIR /srv/everyturn

# Dependencies first, without the project itself: this layer stays until a pin changes.
COPY requirements.txt constraints.txt ./
RUN grep -v '^-e ' requirements.txt > /tmp/requirements.txt \
    && cp constraints.txt /tmp/constraints.txt \
    && pip install -r /tmp/requirements.txt \
    && rm /tmp/requirements.txt /tmp/constraints.txt

COPY . .
RUN pip install --no-deps -e .

# The model lies beside the volume, not in it, where a mounted folder would hide it;
# docker/start.sh copies it over on the first start.
ENV MODEL_STORE=/opt/everyturn
RUN EVERYTURN_HOME="$MODEL_STORE" python -m trainer pull smollm2-135m

RUN useradd --create-home everyturn \
    && install --directory --owner=everyturn --group=everyturn /data
USER everyturn
ENV EVERYTURN_HOME=/data
VOLUME /data

EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]

ENTRYPOINT ["sh", "docker/start.sh"]
# 0.0.0.0 is the container's own network. What reaches it is decided by -p; whoever does, signs in.
CMD ["streamlit", "run", "app/main.py", "--server.address=0.0.0.0", "--server.port=8501"]
