#!/bin/sh
# Put the image's models into EVERYTURN_HOME where they are missing, then become the command.
#
# Copied and not linked: the folder stays whole when it is used without this image. A copy gets
# its name only when it is complete, so a start that was cut off leaves nothing half.
set -eu

mkdir -p "$EVERYTURN_HOME/models"
for model in "$MODEL_STORE"/models/*/; do
    name=$(basename "$model")
    target="$EVERYTURN_HOME/models/$name"
    [ -e "$target" ] && continue
    echo "Copying $name to $EVERYTURN_HOME (once) ..."
    rm -rf "$EVERYTURN_HOME/models/.copy-$name"
    cp -R "$model" "$EVERYTURN_HOME/models/.copy-$name"
    mv "$EVERYTURN_HOME/models/.copy-$name" "$target"
done

exec "$@"
