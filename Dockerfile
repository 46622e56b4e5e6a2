# The program, Node and the libraries they need. docs/guides/docker.md describes how to use the image.
# Base images. A release replaces these tags by digests.
ARG BUILDER=node:26-bookworm-slim
ARG NODE=node:26-bookworm-slim
ARG DEBIAN=debian:bookworm-slim

# These stages run on the platform of the builder. The last stage runs no command, so no processor is emulated.
FROM --platform=$BUILDPLATFORM $BUILDER AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/bundle.mjs scripts/
COPY src src
RUN npm run build

FROM build AS parts
ARG TARGETARCH
# Node 26 contains a recent SQLite. The package for older versions of Node would add 29 MB.
RUN npm ci --omit=dev --os=linux --libc=glibc --cpu="$(echo "$TARGETARCH" | sed s/amd64/x64/)" \
    && rm -r node_modules/@photostructure
# A font for text watermarks (Latin and Chinese), and the library that Node needs in addition to those of the base image.
WORKDIR /root
RUN dpkg --add-architecture "$TARGETARCH" \
    && apt-get -qq update \
    && apt-get -qq download fonts-wqy-microhei "libatomic1:$TARGETARCH" \
    && for file in *.deb; do dpkg -x "$file" /more; done
# A new volume gets the owner of its mount point. In a read-only root file system, mount points must exist.
RUN install -d -o 1000 -g 1000 /more/data && install -d /more/etc/upload-server

FROM --platform=$TARGETPLATFORM $NODE AS node

# Only the binary of Node, without npm and the other files of its image.
FROM --platform=$TARGETPLATFORM $DEBIAN
ENV NODE_ENV=production \
    XDG_CONFIG_HOME=/etc \
    XDG_DATA_HOME=/data \
    UPLOAD_SERVER_HOST=0.0.0.0 \
    UPLOAD_SERVER__SERVER__STRICTPORT=true
WORKDIR /app
COPY --from=node /etc/passwd /etc/group /etc/
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=parts /more /
COPY package.json LICENSE ./
COPY bin bin
COPY --from=parts /app/node_modules node_modules
COPY --from=build /app/dist dist
USER node
VOLUME /data
EXPOSE 36677
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
    CMD ["node", "/app/bin/upload-server.js", "heartbeat", "--ready"]
ENTRYPOINT ["node", "/app/bin/upload-server.js"]
