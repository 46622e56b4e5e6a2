# The server with what it needs to run and nothing else. How to use the image: docs/guides/docker.md.
# A release names the bases by their digests; these are the tags that it takes them from.
ARG BUILDER=node:26-bookworm-slim
ARG NODE=node:26-bookworm-slim
ARG DEBIAN=debian:bookworm-slim

# Both run on the machine that builds, whatever they build for: the last stage runs nothing, so no processor is emulated.
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
# This Node has a sound SQLite in it: the package for older ones would be 29 MB more.
RUN npm ci --omit=dev --os=linux --libc=glibc --cpu="$(echo "$TARGETARCH" | sed s/amd64/x64/)" \
    && rm -r node_modules/@photostructure
# A font for watermarks of text, in Latin and Chinese, and the one library that Node needs in addition to those of the base.
WORKDIR /root
RUN dpkg --add-architecture "$TARGETARCH" \
    && apt-get -qq update \
    && apt-get -qq download fonts-wqy-microhei "libatomic1:$TARGETARCH" \
    && for file in *.deb; do dpkg -x "$file" /more; done
# A new volume takes over the owner of the directory that it covers. What is mounted into a read-only root needs its place.
RUN install -d -o 1000 -g 1000 /more/data && install -d /more/etc/upload-server

FROM --platform=$TARGETPLATFORM $NODE AS node

# Without npm and what else comes with Node, which nothing here calls.
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
