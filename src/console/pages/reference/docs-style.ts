/**
 * The style of `/docs`, on top of Swagger UI's style sheet: the colours of the front page, one column that fits a
 * phone, and buttons large enough for a finger. Dark mode is Swagger UI's own (`html.dark-mode`) with these colours.
 * The rules begin with the page's id, so that they have precedence over Swagger UI's rules.
 */
export const DOCS_STYLE = `
:root { --ink: #14281d; --soft: #5b6b62; --line: #dfe5e1; --ground: #fafaf8; --card: #fff; --well: #f3f6f4; --accent: #1f7a4d; --mark: rgba(31, 122, 77, .1);
  --wrong: #b42318; --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
html.dark-mode { --ink: #e8efe9; --soft: #9db0a4; --line: #2b3a31; --ground: #101813; --card: #17211b; --well: #0c120e; --accent: #6fcf97; --mark: rgba(111, 207, 151, .16);
  --wrong: #ff9a8f; }
html { scroll-behavior: auto; }
#reference, #reference .swagger-ui { background: var(--ground); }
body { margin: 0; color: var(--ink); background: var(--ground); font: 15px/1.5 system-ui, sans-serif; }
.home { max-width: 1040px; margin: 0 auto; padding: 12px 20px 0; color: var(--soft); }
.home a { display: inline-block; padding: 6px 0; color: var(--accent); }
.missing { max-width: 1000px; margin: 40px auto; padding: 0 20px; }
.missing a { color: var(--accent); }

#reference .swagger-ui { max-width: 1080px; margin: 0 auto; font-family: inherit; color: var(--ink); }
#reference .swagger-ui :where(.info .title, .info p, .info li, .info h1, .opblock-tag, .opblock-tag small, .opblock-summary-description, .opblock-description-wrapper p,
  .opblock-external-docs-wrapper p, .opblock-title_normal p, .parameter__name, .parameter__type, .parameter__in, .renderedMarkdown p, .renderedMarkdown li, .markdown p,
  .opblock-section-header h4, .opblock-section-header > label, .tab li, .tab li button.tablinks, table thead tr th, table thead tr td, table tbody tr td, .response-col_status,
  .response-col_links, .responses-inner h4, .responses-inner h5, .response-control-media-type__title, .model, .model-title, .prop-type, .dialog-ux .modal-ux-header h3,
  .dialog-ux .modal-ux-content h4, .dialog-ux .modal-ux-content p, .auth-container h4, .auth-container label, .btn, label, select, input, textarea,
  .json-schema-2020-12__title, .json-schema-2020-12-keyword__name, .json-schema-2020-12-property .json-schema-2020-12__title) { font-family: inherit; color: var(--ink); }
#reference .swagger-ui :where(.parameter__in, .parameter__type, .opblock-tag small, .response-control-media-type__accept-message, .json-schema-2020-12-keyword__value,
  .json-schema-2020-12__attribute, .json-schema-2020-12-keyword__name--secondary) { color: var(--soft); }
#reference .swagger-ui :where(.opblock-description-wrapper p, .renderedMarkdown p, .renderedMarkdown li, .info p) { font-size: 15px; line-height: 1.5; max-width: 76ch; margin-inline: 0; }
#reference .swagger-ui .parameters-col_description .renderedMarkdown p { font-size: 14px; }
#reference .swagger-ui :where(.info a, .markdown a, .renderedMarkdown a, a.nostyle) { color: var(--accent); }
#reference .swagger-ui :where(.markdown code, .renderedMarkdown code) { padding: 1px 5px; font: 600 .9em var(--mono); color: var(--ink); background: var(--mark); overflow-wrap: anywhere; }
#reference .swagger-ui .wrapper { padding: 0 20px; }
#reference .swagger-ui .info { margin: 28px 0 20px; }
#reference .swagger-ui .info .title { font-size: 34px; letter-spacing: -0.02em; }
#reference .swagger-ui .info .title small, #reference .swagger-ui .info .title small.version-stamp { background: var(--soft); }
#reference .swagger-ui .info .title small.version-stamp { background: var(--accent); }
#reference .swagger-ui .info .title small pre { color: var(--ground); }
#reference .swagger-ui .info .link { display: none; }
#reference .swagger-ui .scheme-container { background: transparent; box-shadow: none; margin: 0; padding: 0 0 8px; }
#reference .swagger-ui .scheme-container :where(.servers-title, .servers) { display: none; }

#reference .swagger-ui .opblock-tag { min-height: 44px; font-size: 22px; border-bottom-color: var(--line); }
#reference .swagger-ui .opblock-tag:hover { background: var(--mark); }
#reference .swagger-ui .opblock { margin: 0 0 10px; background: var(--card); border: 1px solid var(--line); border-radius: 8px; box-shadow: none; }
#reference .swagger-ui .opblock .opblock-summary { padding: 4px; border-color: var(--line); }
#reference .swagger-ui .opblock .opblock-summary-method { min-width: 76px; padding: 8px 0; border-radius: 6px; background: var(--soft); color: #fff; text-shadow: none; font-family: inherit; }
#reference.dark-mode .swagger-ui .opblock .opblock-summary-method { background: #4a5a51; }
#reference .swagger-ui .opblock.opblock-post .opblock-summary-method { background: #1f7a4d; }
#reference .swagger-ui .opblock.opblock-get .opblock-summary-method { background: #2b5f9e; }
#reference .swagger-ui .opblock.opblock-delete .opblock-summary-method { background: #b42318; }
#reference .swagger-ui .opblock .opblock-summary-path, #reference .swagger-ui .opblock .opblock-summary-path a { font: 600 15px/1.4 var(--mono); color: var(--ink); overflow-wrap: anywhere; word-break: normal; }
#reference .swagger-ui .opblock .opblock-section-header { background: var(--well); box-shadow: none; border-block: 1px solid var(--line); }
#reference .swagger-ui .opblock .tab-header .tab-item.active h4 span::after { background: var(--accent) !important; }
#reference .swagger-ui :where(.opblock-control-arrow, .authorization__btn, .expand-operation) svg { fill: var(--soft); color: var(--soft); opacity: 1; }
#reference .swagger-ui :where(.opblock-control-arrow, .authorization__btn, .expand-operation, .view-line-link.copy-to-clipboard) { min-width: 32px; min-height: 32px; }
#reference .swagger-ui .authorization__btn { margin: 0; padding: 0; display: flex; align-items: center; justify-content: center; }
#reference .swagger-ui table thead tr :where(td, th) { border-bottom-color: var(--line); }
#reference .swagger-ui :where(input[type=text], input[type=password], textarea, select) { min-height: 40px; max-width: 100%; background-color: var(--card); color: var(--ink);
  border: 1px solid var(--soft); border-radius: 6px; font-size: 16px; }
#reference.dark-mode .swagger-ui :where(input[type=text], input[type=password], textarea, select) { background-color: var(--well); color: var(--ink); border: 1px solid #54685c; }
#reference .swagger-ui :where(input, textarea)::placeholder { color: var(--soft); opacity: 1; }
#reference .swagger-ui textarea { min-height: 200px; font: 14px/1.5 var(--mono); }
#reference .swagger-ui .parameter__name.required > span, #reference .swagger-ui .parameter__name.required::after, #reference .swagger-ui .opblock-section-request-body .opblock-title_normal small,
#reference .swagger-ui .opblock-section-header :where(small, sup) { color: var(--wrong); }
#reference .swagger-ui .btn { min-height: 36px; border-color: var(--soft); color: var(--ink); box-shadow: none; background: transparent; }
#reference .swagger-ui .btn.authorize, #reference .swagger-ui .btn.authorize span { color: var(--accent); border-color: var(--accent); }
#reference .swagger-ui .btn.authorize svg { fill: var(--accent); color: var(--accent); }
#reference .swagger-ui .btn.authorize { display: inline-flex; align-items: center; justify-content: center; }
#reference .swagger-ui .btn.authorize span { float: none; padding: 0; }
#reference .swagger-ui .btn.authorize svg { margin-left: 12px; }
#reference .swagger-ui .btn.cancel { color: var(--wrong); border-color: var(--wrong); }
#reference .swagger-ui .tab li button.tablinks, #reference .swagger-ui a.nostyle { display: inline-block; min-height: 24px; }
#reference .swagger-ui .download-contents { background: #1f7a4d; color: #fff; }
#reference .swagger-ui .btn.execute { color: #fff; background: #1f7a4d; border-color: #1f7a4d; }
#reference .swagger-ui :where(a, button, input, select, textarea, [tabindex]):focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; box-shadow: none; }
#reference .swagger-ui :where(.highlight-code, .curl-command) { min-width: 0; }
#reference .swagger-ui .highlight-code > .microlight, #reference .swagger-ui .curl-command .curl { max-width: 100%; overflow: auto; }

/* Authorize opens with the bearer field in sight. */
#reference .swagger-ui .dialog-ux .modal-ux { max-height: 90vh; overflow: auto; top: 5vh; transform: translate(-50%, 0);
  background: var(--card); border: 1px solid var(--line); }
#reference .swagger-ui .dialog-ux .modal-ux-content { max-height: none; }
#reference .swagger-ui .dialog-ux .modal-ux-header .close-modal { min-width: 36px; min-height: 36px; }
#reference .swagger-ui .dialog-ux .modal-ux-header .close-modal svg { fill: var(--ink); }
#reference .swagger-ui .auth-container { border-color: var(--line); }

@media (max-width: 800px) {
  .home { padding: 8px 12px 0; }
  #reference .swagger-ui .wrapper { padding: 0 12px; }
  #reference .swagger-ui .info { margin: 16px 0; }
  #reference .swagger-ui .info .title { font-size: 28px; }
  #reference .swagger-ui .opblock-tag { display: grid; grid-template-columns: 1fr auto; padding: 8px 4px; font-size: 20px; }
  #reference .swagger-ui .opblock-tag small { grid-column: 1; grid-row: 2; padding: 0; }
  #reference .swagger-ui .opblock-tag .expand-operation { grid-column: 2; grid-row: 1 / 3; }
  #reference .swagger-ui .opblock .opblock-summary-control { display: grid; grid-template-columns: auto 1fr; gap: 2px 10px; min-height: 44px; align-items: center; text-align: left; }
  #reference .swagger-ui .opblock .opblock-summary-method { min-width: 62px; font-size: 12px; }
  #reference .swagger-ui .opblock .opblock-summary-path-description-wrapper { display: block; min-width: 0; }
  #reference .swagger-ui .opblock .opblock-summary-path { display: block; max-width: none; padding: 0; font-size: 14px; }
  #reference .swagger-ui .opblock .opblock-summary-description { padding: 0; color: var(--soft); font-size: 14px; }
  #reference .swagger-ui :where(.authorization__btn, .opblock-control-arrow, .view-line-link.copy-to-clipboard) { min-width: 40px; min-height: 44px; margin: 0; }
  #reference .swagger-ui .opblock-summary .view-line-link.copy-to-clipboard { display: none; }
  #reference .swagger-ui .dialog-ux .modal-ux { width: 94vw; min-width: 0; }
  #reference .swagger-ui :where(table.parameters, table.parameters tbody, .parameters tr, .parameters td, .responses-table, .responses-table tbody, .responses-table tr, .responses-table td) {
    display: block; width: auto; max-width: 100%; }
  #reference .swagger-ui :where(.parameters thead, .responses-table thead, .response-col_links) { display: none; }
  #reference .swagger-ui .parameters-col_name, #reference .swagger-ui table.parameters > tbody > tr > td:first-child { padding: 14px 0 0; min-width: 0; }
  #reference .swagger-ui .parameters-col_description { padding: 4px 0 10px; }
  #reference .swagger-ui .parameters-col_description :where(input, select), #reference .swagger-ui textarea { width: 100%; max-width: 100%; }
  #reference .swagger-ui :where(.table-container, .responses-inner, .opblock-description-wrapper) { padding: 12px; }
  #reference .swagger-ui :where(.responses-inner, .opblock-section) { overflow-x: auto; }
  #reference .swagger-ui .btn { min-height: 44px; }
}
`;
