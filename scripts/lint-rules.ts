// Writes the import table of test/architecture/import-rules.ts into the linter's configuration.
import { readFileSync, writeFileSync } from 'node:fs';
import { withLintPatterns } from '../test/architecture/lint-rules.ts';

const CONFIG = new URL('../.oxlintrc.json', import.meta.url);
const { imports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  imports: Record<string, string>;
};
writeFileSync(CONFIG, withLintPatterns(readFileSync(CONFIG, 'utf8'), Object.keys(imports)));
