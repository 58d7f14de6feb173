/** How this program is called where it was called now, for commands to paste: `npx` finds it in a checkout, where the shell does not. */
export function ownName({ npm_lifecycle_event: event, npm_lifecycle_script: script = '' }: Readonly<Record<string, string | undefined>>): string {
  // What another program that npx started runs inherits the event, but not with this name.
  return event === 'npx' && /^['"]?tollgate\b/.test(script) ? 'npx tollgate' : 'tollgate';
}

export const OWN_NAME = ownName(process.env);
