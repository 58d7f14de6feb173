import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { floorOf, FLOORS, PATHS } from './floors.ts';
import { MODULES } from './import-rules.ts';
import { ROOT } from './source.ts';

// The picture and the table of modules in docs/architecture.md, compared with FLOORS and with the import table.

const text = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8');
const section = text.slice(text.indexOf('\n## Modules\n'), text.indexOf('\n## State\n'));
const picture = /^```mermaid\n([^]*?)^```$/m.exec(section)![1]!;

const boxes = new Map(
  [...picture.matchAll(/^ *(\w+)\["(\w+)(.*)"\]$/gm)].map(([, floor, title, modules]) => {
    expect(title).toBe(floor!.toUpperCase());
    return [floor!, modules!.split(/<br>| · /).filter(Boolean)] as const;
  }),
);

/** Like `a & b --> c & d --> e`. */
const arrows = [...picture.matchAll(/^ *([\w& ]+(?: --> [\w& ]+)+)$/gm)].flatMap(([, line]) => {
  const steps = line!.split('-->').map((step) => step.split('&').map((floor) => floor.trim()));
  return steps.slice(1).flatMap((to, at) => steps[at]!.flatMap((one) => to.map((other) => [one, other] as const)));
});

/** The floors that a floor's modules import, without their own. */
const imported = (floor: string): ReadonlySet<string> =>
  new Set(
    FLOORS[floor]!.flatMap((module) => MODULES[module]!.modules.map((other) => floorOf(other.split('/')[0]!)!)).filter(
      (other) => other !== floor,
    ),
  );

function reached(from: string, seen = new Set<string>()): ReadonlySet<string> {
  for (const [one, other] of arrows)
    if (one === from && !seen.has(other)) {
      seen.add(other);
      reached(other, seen);
    }
  return seen;
}

test('the picture has each floor, with the folders of its modules', () => {
  for (const [floor, modules] of Object.entries(FLOORS))
    expect
      .soft(boxes.get(floor)?.toSorted(), floor)
      .toEqual(modules.filter((module) => module !== floor && !PATHS[module]!.endsWith('.ts')).toSorted());
  expect([...boxes.keys()].toSorted()).toEqual(Object.keys(FLOORS).toSorted());
});

test('each arrow is an import, and each import runs along arrows', () => {
  for (const [one, other] of arrows) expect.soft(imported(one), `${one} --> ${other}`).toContain(other);
  for (const floor of Object.keys(FLOORS))
    expect.soft([...imported(floor).difference(reached(floor))], `${floor} imports beside the arrows`).toEqual([]);
});

test('the table names each module with its floor, from the lowest to the highest', () => {
  const rows = [...section.matchAll(/^\| .*?\((?:\.\.\/)(src\/[\w/-]+)\/README\.md\).*? \| (\w+) +\|/gm)];
  const modules = Object.keys(PATHS).filter((module) => !PATHS[module]!.endsWith('.ts'));
  expect(rows.map(([, path, floor]) => [path, floor])).toEqual(
    modules.map((module) => [PATHS[module], floorOf(module)]),
  );
});
