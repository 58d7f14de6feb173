import type { SdkTarget } from '#config';

/** The settings as a package takes them: `headers.x-org` of the block is `{ headers: { 'x-org': … } }`. */
export function providerSettings({
  settings,
  secrets,
}: Pick<SdkTarget, 'settings' | 'secrets'>): Readonly<Record<string, unknown>> {
  const made: Record<string, unknown> = {};
  for (const [path, value] of Object.entries({ ...settings, ...secrets })) {
    const names = path.split('.');
    const last = names.pop()!;
    let place = made;
    for (const name of names) place = (place[name] ??= {}) as Record<string, unknown>;
    place[last] = value;
  }
  return made;
}
