import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import tailwind from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

const root = import.meta.dirname;
/** The gateway that `npm run web:dev` uses. */
const gateway = process.env['TOLLGATE_URL'] ?? 'http://127.0.0.1:8402';
const PROXIED =
  /^\/(?!@|src\/|node_modules\/|early\.js|assets\/)(?:api|v1|mcp|a2a|docs|openapi\.json|llms\.txt|favicon|admin\/v1)/;

/** Modules that nearly every page needs. They form one file. */
const FIRST_PARTS =
  /vite[\\/]preload-helper|src[\\/](?:api[\\/](?:api-error|catalogue|client|request|session)|app[\\/](?:boot|error-boundary|not-found|search|title)|ui[\\/](?:badge|button|card|choice|current-in-view|empty|error-note|heading|icon|kind|money|price|query-view|skeleton|status|table|time|toast|window-of-rows))\.tsx?$/;
/** Modules that draw the first screen of a service's page without React. The document of a service loads them first. */
const FIRST_PAINT = /src[\\/](?:code[\\/][\w-]+|pages[\\/]offering[\\/](?:card-texts|code|first-paint))\.ts$/;
/** Modules that the first paint and the parts of every page share. */
const WORDS = /src[\\/]ui[\\/](?:button-style|kinds|number|price-words|since|usd)\.ts$/;
/** Modules of pages that show one thing in detail. They form one file instead of one file each. */
const DETAIL_PARTS =
  /src[\\/](?:api[\\/]analytics|code[\\/]code-tabs|ui[\\/](?:chart|code-block|copy|fold|markdown|sparkline|tabs))\.tsx?$/;

export default defineConfig({
  root,
  // The only public file is emitted by a plugin below, so that its name contains a hash.
  publicDir: false,
  plugins: [react(), tailwind(), earlyScript(), firstThingsFirst(), bootOfGateway()],
  resolve: {
    alias: [
      // React 18 and later have this hook. The package is only for older versions.
      { find: 'use-sync-external-store/shim/index.js', replacement: 'react' },
      { find: /^\.\.\/createLucideIcon\.mjs$/, replacement: join(root, 'src/ui/icon.tsx') },
    ],
  },
  server: { proxy: { [PROXIED.source]: { target: gateway, changeOrigin: false } } },
  build: {
    emptyOutDir: true,
    // The gateway reads in this file which files a page needs.
    manifest: 'manifest.json',
    // Nothing is inlined, because the pages' content security policy forbids inline scripts and styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    target: 'es2023',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // Few files before the first page. What every page needs is one file, and this file stays cached when only pages
    // change.
    rolldownOptions: {
      // The guide isn't part of the app. It loads the search by itself, see `src/console/pages/guide/guide.js`.
      input: { index: join(root, 'index.html'), search: join(root, 'src/search/guide.ts') },
      preserveEntrySignatures: 'allow-extension',
      output: {
        codeSplitting: {
          groups: [
            {
              name: 'frame',
              test: /node_modules[\\/](?:react|react-dom|scheduler|wouter|regexparam|@tanstack)[\\/]/,
            },
            // These groups come before those that import them, which would otherwise include them.
            { name: 'words', test: WORDS },
            { name: 'first-paint', test: FIRST_PAINT },
            { name: 'parts', test: FIRST_PARTS },
            { name: 'details', test: DETAIL_PARTS },
          ],
        },
      },
    },
  },
});

/** The script that runs before the first paint. It is a classic script, which Vite doesn't build. */
function earlyScript(): Plugin {
  const source = readFileSync(join(root, 'public', 'early.js'));
  const fileName = `assets/early-${createHash('sha256').update(source).digest('hex').slice(0, 8)}.js`;
  return {
    name: 'early-script',
    generateBundle() {
      this.emitFile({ type: 'asset', fileName, source });
    },
    configureServer(server) {
      server.middlewares.use('/early.js', (_request, response) => {
        response.setHeader('content-type', 'text/javascript');
        response.end(source);
      });
    },
    transformIndexHtml: {
      order: 'pre',
      handler: (html, { server }) => html.replace('{{early}}', server ? '/early.js' : `/${fileName}`),
    },
  };
}

/**
 * Orders the document's files for slow connections. The styles are requested first because nothing is painted without
 * them, and stand behind the early script, which would wait for them. Then come the files of the first paint, because a
 * browser with HTTP/1.1 requests only six files at once.
 */
function firstThingsFirst(): Plugin {
  return {
    name: 'first-things-first',
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler(html) {
        const styles = /\n *<link rel="stylesheet"[^>]*>/.exec(html)?.[0] ?? '';
        const words = /\n *<link rel="modulepreload"[^>]*\/words-[^>]*>/.exec(html)?.[0] ?? '';
        return html
          .replace(styles, '')
          .replace(words, '')
          .replace(
            /\n *<script type="application\/json"/,
            (first) => styles.replace('rel="stylesheet"', 'rel="preload" as="style"') + first,
          )
          .replace(/\n *<script type="module"/, (first) => styles + words + first);
      },
    },
  };
}

/** In development, inserts the boot facts of the running gateway into the document. */
function bootOfGateway(): Plugin {
  return {
    name: 'boot-of-gateway',
    apply: 'serve',
    async transformIndexHtml(html) {
      const page = await fetch(`${gateway}/marketplace`).then(
        (answer) => answer.text(),
        () => '',
      );
      const boot = /id="boot">([^<]*)</.exec(page)?.[1] ?? '{}';
      return html
        .replace('{{boot}}', () => boot)
        .replaceAll('{{title}}', 'tollgate')
        .replaceAll('{{description}}', '');
    },
  };
}
