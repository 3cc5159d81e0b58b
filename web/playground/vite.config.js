import { createHash } from 'node:crypto';
import { defineConfig } from 'vite';

// GraphiQL's style sheet carries its fonts as data: URLs, which the page's CSP refuses (font-src 'self').
// Each becomes a file of its own beside the style sheet; a browser then loads only those it draws with.
function fontsAsFiles() {
  return {
    name: 'fonts-as-files',
    generateBundle(_options, bundle) {
      for (const asset of Object.values(bundle)) {
        if (asset.type !== 'asset' || !asset.fileName.endsWith('.css')) continue;
        asset.source = String(asset.source).replace(
          /url\((["']?)data:font\/(\w+);(?:[\w=-]+;)*base64,([A-Za-z0-9+/=]+)\1\)/g,
          (_url, _quote, format, data) => {
            const source = Buffer.from(data, 'base64');
            const hash = createHash('sha256').update(source).digest('hex').slice(0, 8);
            const name = `font-${hash}.${format}`;
            this.emitFile({ type: 'asset', fileName: `assets/${name}`, source });
            return `url(./${name})`;
          },
        );
      }
    },
  };
}

export default defineConfig({
  base: './', // the page works under any path it is mounted at
  plugins: [fontsAsFiles()],
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    assetsInlineLimit: 0, // no data: URLs
    chunkSizeWarningLimit: Infinity, // Monaco is one chunk of its own
    rolldownOptions: {
      // 'use client' in the packages: nothing to a page that has no server side.
      onLog: (level, log, handle) => log.code === 'MODULE_LEVEL_DIRECTIVE' || handle(level, log),
    },
    license: { fileName: 'licenses.md' },
  },
});
