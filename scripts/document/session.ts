// The README's session by a client that is generated from openapi.json. It prints each answer on a line: internal/readme compares them with the README.
// Usage: node session.js URL KEY
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const [url, key] = process.argv.slice(2);
const bahi = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });

function show({ data, error }: { data?: unknown; error?: unknown }) {
  if (error) throw new Error(JSON.stringify(error));
  console.log(JSON.stringify(data));
}

const bank = { path: { bank_account_id: 1 } };
show(await bahi.POST("/bank", { body: { name: "SBI current account" } }));
show(await bahi.POST("/bank-ledger/{bank_account_id}", { params: bank, body: { date: "2026-09-28", in_entries: [{ description: "Opening balance", amount: 50000 }] } }));
show(await bahi.POST("/bank-ledger/{bank_account_id}", { params: bank, body: { date: "2026-10-12", out_entries: [{ description: "Rent", amount: 12000 }] } }));
show(await bahi.POST("/bank-ledger/{bank_account_id}", { params: bank, body: { date: "2026-09-30", in_entries: [{ description: "Bill 214", amount: 8250.5 }] } }));
show(await bahi.PUT("/bank-ledger/{bank_account_id}", {
  params: { ...bank, header: { "Bahi-Reason": "typing mistake" } },
  body: { id: 2, out_entries: [{ description: "Rent", amount: 12500 }] },
}));
show(await bahi.GET("/bank-ledger/{bank_account_id}", { params: { ...bank, query: { from: "2026-09-30" } } }));
show(await bahi.GET("/bank/{bank_id}", { params: { path: { bank_id: 1 } } }));
show(await bahi.GET("/bank/{bank_id}", { params: { path: { bank_id: 1 }, query: { as_of: "2026-09-30" } } }));
show(await bahi.GET("/bank/{bank_id}", { params: { path: { bank_id: 1 }, query: { known_at: "6" } } }));

const karigar = { path: { karigar_id: 2 } };
show(await bahi.POST("/karigar", { body: { name: "Imran" } }));
show(await bahi.POST("/karigar-ledger/{karigar_id}", { params: karigar, body: { date: "2026-10-01", out_entries: [{ item_name: "fine silver", weight: 500, touch: 99.5 }] } }));
show(await bahi.POST("/karigar-ledger/{karigar_id}", {
  params: karigar,
  body: { date: "2026-10-05", in_entries: [{ item_name: "payal", pure_weight: 520, fine_percent: 92, wastage_percent: 2, other: 1500 }] },
}));
show(await bahi.POST("/karigar-ledger/{karigar_id}", { params: karigar, body: { date: "2026-10-06", out_entries: [{ amount: 1500 }] } }));
show(await bahi.GET("/karigar/{karigar_id}", { params: karigar }));
