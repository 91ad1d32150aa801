// A public app: its ID is no secret. Its redirect URI is the address of index.html, without a query.
export const hub = "http://127.0.0.1:8000";
export const clientId = "CLIENT_ID";
export const scope = "openid profile read-repos";
