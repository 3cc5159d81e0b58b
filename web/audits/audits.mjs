// Runs the audits of GraphQL over HTTP against a server:
//
//	node audits.mjs http://127.0.0.1:8080/graphql [TOKEN]
//
// prints {"results": [{"id", "name", "status", "reason"}]}, status being ok, notice, warn or error.
import { serverAudits } from 'graphql-http';

const [url, token] = process.argv.slice(2);
const authorization = token ? { authorization: `Bearer ${token}` } : {};
const authorized = (address, options = {}) =>
  fetch(address, { ...options, headers: { ...options.headers, ...authorization } });

const results = [];
for (const audit of serverAudits({ url, fetchFn: authorized })) {
  const { status, reason } = await audit.fn();
  results.push({ id: audit.id, name: audit.name, status, reason });
}
console.log(JSON.stringify({ results }));
