/**
 * The colours of the front page and the guide. Names and values are the same as in the web pages
 * (`web/src/styles.css`).
 */
export const PALETTE = `:root { color-scheme: light dark; --ink: light-dark(#14281d, #e8efe9); --soft: light-dark(#52625a, #9db0a4); --line: light-dark(#dfe5e1, #2b3a31);
  --ground: light-dark(#fafaf8, #101813); --card: light-dark(#fff, #17211b); --sunk: light-dark(#f1f3ef, #0c130f); --accent: light-dark(#1f7a4d, #6fcf97);
  --edge: light-dark(#869389, #6b8073); --deep: light-dark(#17603c, #8fdcb0); --on: light-dark(#fff, #0b1a11); --gold: light-dark(#d9a520, #f4c95d);
  --model: light-dark(#2456b8, #93b7ff); --tool: light-dark(#8a5200, #f0b866); --agent: light-dark(#6d36a3, #cfabf5); --image: light-dark(#a3275f, #f59cc3); --video: light-dark(#0b6a63, #63d6c7); }
:root[data-theme=light] { color-scheme: light; }
:root[data-theme=dark] { color-scheme: dark; }
`;
