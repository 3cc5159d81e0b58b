// Opens the playground in a real browser, runs every tab, comes back with another token, and prints one line of JSON:
//
//   node playground.mjs http://127.0.0.1:8080/ [screenshot.png]
//
//   tabs           [{title, response}], the response as the server gave it
//   requests       URLs asked for beyond loopback
//   consoleErrors  errors in the console, of the page and of its workers, and uncaught exceptions
//   cspViolations  what the Content-Security-Policy refused
//   failures       what else is not as it should be
//   readyMs        from the request for the page until its editor shows the first operation
//
// Exits 1 if any of requests, consoleErrors, cspViolations and failures is not empty or a response has `errors`.
// CHROMIUM names the browser, default /usr/bin/chromium.
import { chromium } from 'playwright-core';

const [, , url, screenshot] = process.argv;
if (!url) {
  console.error('usage: node playground.mjs <url of the playground> [screenshot.png]');
  process.exit(2);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});

const report = { tabs: [], requests: [], consoleErrors: [], cspViolations: [], failures: [] };
try {
  await drive();
} catch (error) {
  report.failures.push(String(error));
} finally {
  await browser.close();
}
console.log(JSON.stringify(report));
const clean = ['requests', 'consoleErrors', 'cspViolations', 'failures'].every((list) => report[list].length === 0);
process.exitCode = clean && report.tabs.every(({ response }) => response?.errors === undefined) ? 0 : 1;

async function drive() {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, colorScheme: 'light' });
  context.setDefaultTimeout(30_000);
  context.on('request', (request) => noteRequest(request.url()));
  context.on('weberror', (error) => report.consoleErrors.push(String(error.error())));
  await context.exposeFunction('noteViolation', (violation) => report.cspViolations.push(violation));
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      window.noteViolation(`${event.effectiveDirective}: ${event.blockedURI} in ${event.sourceFile}:${event.lineNumber}`);
    });
  });
  const page = await context.newPage();
  page.on('websocket', (socket) => noteRequest(socket.url()));
  page.on('console', (message) => {
    if (message.type() === 'error') report.consoleErrors.push(`${message.text()} (${message.location().url})`);
  });

  const settings = await firstVisit(page);
  await laterVisit(page, settings);
  await visitWithOtherTabs(page, settings);
}

/** Runs every tab against the server. */
async function firstVisit(page) {
  const settingsResponse = page.waitForResponse((response) => response.url().endsWith('/playground.json'));
  const started = performance.now();
  await page.goto(url);
  const settings = await (await settingsResponse).json();
  await editorReady(page);
  report.readyMs = Math.round(performance.now() - started);

  check(await titles(page), settings.tabs.map(({ title }) => title), 'titles of the tabs');
  for (let index = 0; index < settings.tabs.length; index++) {
    const title = await openTab(page, index);
    const answered = page.waitForResponse((response) => isExecution(response.request(), settings));
    await page.locator('.graphiql-execute-button').click();
    const answer = await answered;
    check(answer.request().headers().authorization, authorization(settings), `Authorization of ${title}`);
    report.tabs.push({ title, response: await readJSON(answer) });
    await page.locator('.graphiql-response .view-lines').getByText(/"(data|errors)"/).first().waitFor();
  }

  if (!page.workers().some((worker) => worker.url().includes('graphql.worker'))) {
    report.failures.push('the GraphQL worker does not run');
  }
  await storageSettled(page);
  const stored = await page.evaluate(() => JSON.stringify(localStorage));
  if (settings.token && stored.includes(settings.token)) {
    report.failures.push('the token lies in localStorage');
  }
  if (screenshot) {
    await page.getByRole('button', { name: 'Headers', exact: true }).click();
    await pause(page, 500); // the editor takes the size of its pane
    await page.screenshot({ path: screenshot });
  }
  return settings;
}

/** The tabs come out of the storage, and each must send the token of now. The executions are answered here, not by the server. */
async function laterVisit(page, settings) {
  const later = { ...settings, token: 'token-of-a-later-visit' };
  await page.route('**/playground.json', (route) => route.fulfill({ json: later }));
  const sent = [];
  await page.route(new URL(settings.endpoint, url).href, (route) => {
    const request = route.request();
    sent.push(request.headers().authorization);
    return isExecution(request, settings)
      ? route.fulfill({ json: { data: null } })
      : route.continue({ headers: { ...request.headers(), authorization: authorization(settings) ?? '' } });
  });
  await page.reload();
  await editorReady(page);
  check(await titles(page), settings.tabs.map(({ title }) => title), 'titles of the tabs on a later visit');
  for (let index = 0; index < settings.tabs.length; index++) {
    const title = await openTab(page, index);
    const asked = page.waitForRequest((request) => isExecution(request, settings));
    await page.locator('.graphiql-execute-button').click();
    check((await asked).postDataJSON().operationName, title, 'operation sent on a later visit');
  }
  check([...new Set(sent)], [authorization(later)], 'Authorization on a later visit');
  await storageSettled(page);
}

/** Other tabs are offered: they replace the stored ones. */
async function visitWithOtherTabs(page, settings) {
  const tabs = [{ title: 'Other', query: 'query Other($id: ID) {\n  __typename\n}', variables: '{ "id": "other" }' }];
  await page.route('**/playground.json', (route) => route.fulfill({ json: { ...settings, tabs } }));
  await page.reload();
  await editorReady(page);
  check(await titles(page), ['Other'], 'titles of the tabs after other ones were offered');
  const variables = await page.locator('.graphiql-editor-tool .graphiql-editor:not(.hidden) .view-lines').innerText();
  check(variables.replaceAll(/\s+/g, ''), '{"id":"other"}', 'variables after other tabs were offered');
}

async function editorReady(page) {
  await page.locator('.graphiql-query-editor .view-line').filter({ hasText: /\S/ }).first().waitFor();
}

async function titles(page) {
  return page.locator('.graphiql-tab-button').allInnerTexts();
}

/** Opens a tab and gives GraphiQL the time to see which operation it holds; it looks 100 ms after the last change. */
async function openTab(page, index) {
  const tab = page.locator('.graphiql-tab-button').nth(index);
  await tab.click();
  await pause(page, 400);
  return tab.innerText();
}

/** GraphiQL writes to the storage 500 ms after the last change. */
async function storageSettled(page) {
  await pause(page, 800);
}

/** Waits by the page's own clock, so that timers of the page that were due earlier have run, however busy the machine is. */
async function pause(page, milliseconds) {
  await page.evaluate((time) => new Promise((resolve) => setTimeout(resolve, time)), milliseconds);
}

function isExecution(request, settings) {
  return (
    request.method() === 'POST' &&
    request.url() === new URL(settings.endpoint, url).href &&
    request.postDataJSON()?.operationName !== 'IntrospectionQuery'
  );
}

async function readJSON(response) {
  const body = await response.text();
  try {
    return JSON.parse(body);
  } catch {
    report.failures.push(`HTTP ${response.status()}, not JSON: ${body.slice(0, 200)}`);
    return null;
  }
}

function authorization({ token }) {
  return token ? `Bearer ${token}` : undefined;
}

function noteRequest(address) {
  const { protocol, hostname, href } = new URL(address);
  const local = hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
  if (!['data:', 'blob:', 'about:'].includes(protocol) && !local) report.requests.push(href);
}

function check(got, want, what) {
  if (JSON.stringify(got) !== JSON.stringify(want)) {
    report.failures.push(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }
}
