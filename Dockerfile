# EveryTurn with its embedded model.
#
#   docker build -t everyturn .
#   docker run --rm --init -p 127.0.0.1:8501:8501 -v everyturn:/data everyturn
#
# then open http://127.0.0.1:8501. Publish the port to 127.0.0.1 only, as above: whoever reaches
# it can read and change everything.
#
# The CPU build of torch is installed. For an NVIDIA GPU, take PyPI's build, which brings CUDA
# along (several GB more), and hand the device in:
#
#   docker build -t everyturn-gpu --build-arg TORCH_INDEX=https://pypi.org/simple .
#   docker run --rm --init --gpus all -p 127.0.0.1:8501:8501 -v everyturn:/data everyturn-gpu
#
# To keep the data in a folder of the host, mount it and run as its owner:
# -v "$PWD/data:/data" --user "$(id -u):$(id -g)".

FROM python:3.11-slim

# Where the torch wheel comes from, beside the usual package index.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

WORKDIR /srv/everyturn

# Dependencies first, without the project itself: this layer stays until a pin changes.
COPY requirements.txt constraints.txt ./
RUN grep -v '^-e ' requirements.txt > /tmp/requirements.txt \
    && cp constraints.txt /tmp/constraints.txt \
    && pip install --extra-index-url "$TORCH_INDEX" -r /tmp/requirements.txt \
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
# 0.0.0.0 is the container's own network; what reaches it is decided by -p.
CMD ["streamlit", "run", "app/main.py", "--server.address=0.0.0.0", "--server.port=8501"]
