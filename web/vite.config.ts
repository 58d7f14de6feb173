import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import tailwind from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

const root = import.meta.dirname;
/** The gateway that `npm run web:dev` shows. */
const gateway = process.env['TOLLGATE_URL'] ?? 'http://127.0.0.1:8402';
const PROXIED =
  /^\/(?!@|src\/|node_modules\/|early\.js|assets\/)(?:api|v1|mcp|a2a|docs|openapi\.json|llms\.txt|favicon|admin\/v1)/;

/** Parts that nearly every page shows: one file. */
const FIRST_PARTS =
  /vite[\\/]preload-helper|src[\\/](?:api[\\/](?:analytics|api-error|catalogue|request|session)|app[\\/](?:boot|error-boundary|not-found|search|title)|ui[\\/](?:badge|button|card|choice|copy|current-in-view|empty|error-note|heading|icon|kind|money|price|query-view|skeleton|status|table|tabs|time|toast|window-of-rows))\.tsx?$/;
/** The document of a service loads these two before all else: they paint its first screen, without React. */
const FIRST_PAINT = /src[\\/](?:code[\\/][\w-]+|pages[\\/]offering[\\/](?:card-texts|code|first-paint))\.ts$/;
/** The first paint shares these with the parts of every page. */
const WORDS = /src[\\/]ui[\\/](?:button-style|kinds|number|price-words|since|usd)\.ts$/;
/** Parts of pages that show one thing in whole: another file, in place of one for each. */
const DETAIL_PARTS = /src[\\/](?:code[\\/]code-tabs|ui[\\/](?:chart|code-block|fold|markdown|sparkline))\.tsx?$/;

export default defineConfig({
  root,
  // The one public file gets a name with a hash.
  publicDir: false,
  plugins: [react(), tailwind(), earlyScript(), firstThingsFirst(), bootOfGateway()],
  resolve: {
    alias: [
      // React has had it since 18: the package is for older ones.
      { find: 'use-sync-external-store/shim/index.js', replacement: 'react' },
      { find: /^\.\.\/createLucideIcon\.mjs$/, replacement: join(root, 'src/ui/icon.tsx') },
    ],
  },
  server: { proxy: { [PROXIED.source]: { target: gateway, changeOrigin: false } } },
  build: {
    emptyOutDir: true,
    // The gateway reads there which files a page needs.
    manifest: 'manifest.json',
    // Nothing is inlined: the policy of the pages takes no script or style in the document.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    target: 'es2023',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // Few files before the first page: what every page needs is one file, and stays when only pages change.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            {
              name: 'frame',
              test: /node_modules[\\/](?:react|react-dom|scheduler|wouter|regexparam|@tanstack)[\\/]/,
            },
            // Before those that import it, or they would take it in.
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

/** The script that runs before the first paint: a classic one, which Vite does not build. */
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
 * The order in which a slow line brings the files. Nothing is painted before the styles are there. Then comes what the
 * first paint needs: a browser that speaks HTTP/1.1 asks for six files at once.
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
          .replace(/\n *<script type="application\/json"/, (first) => styles + first)
          .replace(/\n *<script type="module"/, (first) => words + first);
      },
    },
  };
}

/** The development server shows what the gateway tells about itself. */
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
