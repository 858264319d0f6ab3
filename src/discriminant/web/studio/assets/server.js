/** Requests to the studio's server. The token comes in the fragment of the first URL. */

const KEY = "discriminant-studio-token";

/** Read the token from the URL, and remove it from there. */
export function readToken() {
  const parts = new URLSearchParams(location.hash.slice(1)), token = parts.get("token");
  if (token) {
    sessionStorage.setItem(KEY, token);
    parts.delete("token");
    history.replaceState(null, "", `${location.pathname}#${parts}`);
  }
  return sessionStorage.getItem(KEY) !== null;
}

/** An answer of the server that is an error; its message is for people. */
export class ServerError extends Error {
  constructor(status, message, kind = null) {
    super(message);
    this.name = "ServerError";
    this.status = status;
    this.kind = kind;
  }
}

async function request(path, { method = "GET", body, signal } = {}) {
  let response;
  try {
    response = await fetch(path, {
      method, body, signal,
      headers: { authorization: `Bearer ${sessionStorage.getItem(KEY)}` },
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, "The studio no longer answers. Start it again: discriminant studio");
  }
  if (response.ok) return response;
  const text = await response.text();
  let message = `The server answered with status ${response.status}.`, kind = null;
  try {
    ({ error: message, kind } = JSON.parse(text));
  } catch { /* not an error of the studio: the status says what is known */ }
  if (response.status === 401) {
    message = "This page has no valid token. Open the address that discriminant studio has printed.";
  }
  throw new ServerError(response.status, message, kind);
}

export const get = async (path) => (await request(path)).json();

export const post = async (path, body, signal) =>
  (await request(path, { method: "POST", body: JSON.stringify(body), signal })).json();

export const postForBytes = async (path, body, signal) =>
  (await request(path, { method: "POST", body: JSON.stringify(body), signal })).arrayBuffer();

export const upload = async (file, name) =>
  (await request(`/api/upload?name=${encodeURIComponent(name)}`, { method: "POST", body: file })).json();

/** Arrays of a binary response: see tables.py. */
export async function getArrays(path) {
  const buffer = await (await request(path)).arrayBuffer(), view = new DataView(buffer);
  const size = view.getUint32(0, true);
  const { arrays } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const result = {};
  let at = 4 + size;
  for (const [name, kind, length] of arrays) {
    result[name] = new (kind === "int32" ? Int32Array : Float64Array)(buffer, at, length);
    at += Math.ceil((length * result[name].BYTES_PER_ELEMENT) / 8) * 8;
  }
  return result;
}

/** Save the response to a request as a file. */
export async function save(path, body) {
  const response = await request(path, body ? { method: "POST", body: JSON.stringify(body) } : {});
  const name = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1];
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name ?? "report.html";
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Call `use` with each server-sent event of a request. */
export async function events(path, body, use) {
  const response = await request(path, { method: "POST", body: JSON.stringify(body) });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) if (part.startsWith("data: ")) use(JSON.parse(part.slice(6)));
  }
}
