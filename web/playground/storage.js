// What GraphiQL remembers between visits: edited tabs, the theme, the sizes of the panes. Never a header, and so never a token.
//
// The names carry a prefix of their own: every program that ever served GraphiQL on this host and port shares one localStorage,
// and their tabs, or headers they kept, must not show up here.
const PREFIX = 'countersign:';
const OFFERED = PREFIX + 'offered';

// GraphiQL's names for what belongs to the tabs. It writes `headers` only when told to keep headers, which this page does not.
const TAB_STATE = ['tabState', 'query', 'variables', 'headers'].map((name) => `${PREFIX}graphiql:${name}`);

/** The storage GraphiQL is given in place of localStorage. */
export const storage = {
  getItem: (name) => localStorage.getItem(PREFIX + name),
  setItem: (name, value) => localStorage.setItem(PREFIX + name, value),
  removeItem: (name) => localStorage.removeItem(PREFIX + name),
  get length() {
    return ownKeys().length;
  },
  clear: () => ownKeys().forEach((key) => localStorage.removeItem(key)),
};

/**
 * Says whether the offered tabs should be opened, and forgets the stored ones if so.
 *
 * GraphiQL prefers stored tabs to offered ones. Once the server offers others (a new demo tenant, so other ids), the stored ones name rows
 * that are gone; they are dropped. As long as the offer stays the same the visitor's edits stay too.
 */
export function startFresh(tabs) {
  const offer = JSON.stringify(tabs);
  if (localStorage.getItem(OFFERED) === offer && localStorage.getItem(TAB_STATE[0])) {
    return false;
  }
  TAB_STATE.forEach((key) => localStorage.removeItem(key));
  localStorage.setItem(OFFERED, offer);
  return true;
}

function ownKeys() {
  return Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
}
