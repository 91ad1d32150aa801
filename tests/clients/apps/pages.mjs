// Serves apps that run in the browser alone: their pages, their settings, and the installed packages they load.
import { readFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";

const { HUB, SITE, CLIENT_ID, SCOPES, LISTEN_FD, PAGES } = process.env;
const settings = `export const hub = "${HUB}", clientId = "${CLIENT_ID}", scopes = "${SCOPES}";`;
const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript" };

http
  .createServer(async (request, response) => {
    const { pathname } = new URL(request.url, SITE);
    const type = types[path.extname(pathname)];
    if (pathname === "/settings.js") return response.setHeader("content-type", type).end(settings);
    const folder = pathname.startsWith("/node_modules/") ? process.cwd() : PAGES;
    const text = type && (await readFile(path.join(folder, pathname)).catch(() => undefined));
    if (text) response.setHeader("content-type", type).end(text);
    else response.writeHead(404).end();
  })
  .listen({ fd: Number(LISTEN_FD) });
