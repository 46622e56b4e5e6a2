# The server with what it needs to run and nothing else. How to use the image: docs/docker.md.
FROM node:22-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY src src
RUN npm run build && npm prune --omit=dev

FROM node:22-bookworm-slim
ENV NODE_ENV=production \
    XDG_CONFIG_HOME=/etc \
    XDG_DATA_HOME=/data \
    UPLOAD_SERVER_HOST=0.0.0.0 \
    UPLOAD_SERVER__SERVER__STRICTPORT=true
WORKDIR /app
COPY package.json ./
COPY bin bin
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
# For watermarks of text, in Latin and Chinese.
RUN apt-get -qq update \
    && apt-get -qq install -y --no-install-recommends fonts-wqy-microhei >/dev/null \
    && apt-get clean && rm -rf /var/lib/apt/lists/*
# A new volume takes over the owner of the directory that it covers. What is mounted into a read-only root needs its place.
RUN install -d -o node -g node /data && install -d /etc/upload-server
USER node
VOLUME /data
EXPOSE 36677
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
    CMD ["node", "/app/bin/upload-server.js", "heartbeat"]
ENTRYPOINT ["node", "/app/bin/upload-server.js"]
