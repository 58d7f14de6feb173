// Draws the Mermaid diagrams of docs/ as SVG into docs/images, for the guide: `architecture.md` has
// `docs/images/diagram-architecture.svg`. Run it after a change of a diagram; a test names the files that are old.
//
//   node scripts/diagrams.ts
//
// Mermaid is large, and nothing else needs it, so this script installs it into .cache.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';
import { diagramFile, diagramMark, diagramsOf } from '../src/console/pages/guide/guide-document.ts';
import { findChromium } from '../test/support/find-chromium.ts';

const CHECKOUT = resolve(import.meta.dirname, '..');
const DOCS = join(CHECKOUT, 'docs');
const TOOLS = join(CHECKOUT, '.cache', 'mermaid');
const MERMAID = 'mermaid@11.17.2';

mkdirSync(TOOLS, { recursive: true });
writeFileSync(join(TOOLS, 'package.json'), '{"private":true}');
execFileSync('npm', ['install', '--no-audit', '--no-fund', MERMAID], { cwd: TOOLS, stdio: 'inherit' });

const { file: executablePath, env } = await findChromium();
const browser = await chromium.launch({
  executablePath,
  env,
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});
const page = await browser.newPage();
await page.setContent('<body></body>');
await page.addScriptTag({ path: join(TOOLS, 'node_modules', 'mermaid', 'dist', 'mermaid.min.js') });
for (const file of readdirSync(DOCS, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))) {
  for (const [index, source] of diagramsOf(readFileSync(join(DOCS, file), 'utf8')).entries()) {
    const svg = await page.evaluate(
      `(async () => {
        // Labels as SVG text: a picture may not contain HTML.
        mermaid.initialize({ startOnLoad: false, theme: 'neutral', htmlLabels: false, flowchart: { htmlLabels: false },
          fontFamily: 'ui-sans-serif, system-ui, sans-serif' });
        return (await mermaid.render('diagram', ${JSON.stringify(source)})).svg;
      })()`,
    );
    const name = diagramFile(file, index);
    writeFileSync(join(DOCS, 'images', name), `${String(svg)}\n<!-- ${diagramMark(source)} -->\n`);
    console.log(`docs/images/${name}`);
  }
}
await browser.close();
