import './workers.js';
import 'graphiql/style.css';
import './page.css';
import { GraphiQL } from 'graphiql';
import { createRoot } from 'react-dom/client';
import { startFresh, storage } from './storage.js';

// The settings come by a request of their own: written into the page they would need an inline script, which the CSP refuses.
async function loadSettings() {
  const response = await fetch('./playground.json', { cache: 'no-store' });
  if (!response.ok) {
    throw new Error(`playground.json: HTTP ${response.status}`);
  }
  return response.json();
}

function authorization(token) {
  return token ? { Authorization: `Bearer ${token}` } : undefined;
}

function createFetcher({ endpoint, token }) {
  return async (params, { headers } = {}) => {
    // The first introspection leaves before the Headers tab exists, so it would go out without the token. Every other request carries
    // exactly what that tab says: whoever empties it wants to see the answer without a token.
    const credentials = headers ?? (params.operationName === 'IntrospectionQuery' ? authorization(token) : undefined);
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/graphql-response+json, application/json;q=0.9',
        ...credentials,
      },
      body: JSON.stringify(params),
    });
    const body = await response.text();
    try {
      return JSON.parse(body);
    } catch {
      throw new Error(`HTTP ${response.status}, and the body is not JSON: ${body.slice(0, 500)}`);
    }
  };
}

function playground(settings) {
  const headers = settings.token && JSON.stringify(authorization(settings.token), null, 2);
  const tabs = settings.tabs.map(({ query, variables }) => ({ query, variables, headers }));
  const opened = startFresh(settings.tabs) ? tabs[0] : undefined;

  return (
    <GraphiQL
      fetcher={createFetcher(settings)}
      storage={storage}
      defaultTabs={tabs.length > 0 ? tabs : undefined}
      // GraphiQL fills its editors from these two, not from the first tab. On a return they are in the storage.
      initialQuery={opened?.query}
      initialVariables={opened?.variables}
      // Headers are taken from the settings at each visit and never stored. Stored tabs have none and fall back to defaultHeaders, so
      // a token that was replaced since the last visit is replaced in all of them.
      initialHeaders={headers}
      defaultHeaders={headers}
      shouldPersistHeaders={false}
      showPersistHeadersSettings={false}
      // No history: that plugin stores the headers of each request, token included, in localStorage.
      plugins={[]}
      defaultEditorToolsVisibility="variables"
    />
  );
}

const root = createRoot(document.getElementById('playground'));
try {
  root.render(playground(await loadSettings()));
} catch (error) {
  root.render(<p className="playground-failure">The playground could not load its settings. {error.message}</p>);
}
