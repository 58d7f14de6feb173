import { plain } from './guide-pages.ts';

/** Gives the headings of one page their anchors, as the repository's host makes them: a second one gets `-1`. */
export function createAnchors(): (heading: string) => string {
  const given = new Map<string, number>();
  return (heading) => {
    const name = plain(heading)
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
    const times = given.get(name) ?? 0;
    given.set(name, times + 1);
    return times === 0 ? name : `${name}-${times}`;
  };
}
