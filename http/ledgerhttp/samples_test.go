package ledgerhttp_test

// samples are the inputs of the suite for a ledger. A new ledger is tested once it has them.
type samples struct {
	in, out []sample // of either side, at least two
}

// sample is an entry as a client sends it, and its effect on its side.
type sample struct {
	entry      string
	cash, fine string // decimals; "": no effect
}

// ledgerSamples has the samples of each ledger, by its name.
var ledgerSamples = map[string]samples{
	"bank": {
		in: []sample{{entry: `{"description":"Sale, bill 118","amount":1250.50}`, cash: "1250.50"}, {entry: `{"amount":0.01}`, cash: "0.01"}},
		out: []sample{{entry: `{"description":"₹ किराया <b>&amp; \"bill\" \\ ' -- 😀 é","amount":300}`, cash: "300"},
			{entry: `{"amount":9999999999999}`, cash: "9999999999999"}},
	},
	"bullion": {
		in: []sample{
			{entry: `{"item_name":"bar","weight":100,"touch":99.5}`, fine: "99.5"},
			{entry: `{"description":"by cheque","amount":0.01}`, cash: "0.01"},
			{entry: `{"kind":"metal","fine_weight":10,"rate":72000,"rate_unit":"per_10g"}`, fine: "10"},
		},
		out: []sample{
			{entry: `{"kind":"cash","amount":70000.50}`, cash: "70000.50"},
			{entry: `{"kind":"metal","item_name":"पाटला","fine_weight":0.001}`, fine: "0.001"},
		},
	},
	"client": {
		in: []sample{
			{entry: `{"item_name":"old gold","weight":10,"touch":91.6}`, fine: "9.16"},
			{entry: `{"description":"by cheque","amount":0.01}`, cash: "0.01"},
			{entry: `{"fine_weight":10,"rate":7000}`, cash: "70000"},
		},
		out: []sample{
			{entry: `{"item_name":"पायल","slip_number":"118","weight":100,"touch":92,"wastage_percent":3,"making_charge":1500}`, cash: "1500",
				fine: "95"},
			{entry: `{"weight":10,"touch":91.6,"rate":7000.50,"making_charge":500}`, cash: "64624.58"},
			{entry: `{"weight":100,"touch":92,"wastage_weight":2.5,"amount":7}`, cash: "7", fine: "94.5"},
		},
	},
	"karigar": {
		in: []sample{
			{entry: `{"item_name":"payal","pure_weight":520,"fine_percent":92,"wastage_percent":2,"other":1500}`, cash: "1500", fine: "488.8"},
			{entry: `{"wastage_weight":0.25}`, fine: "0.25"},
			{entry: `{"item_name":"labour","other":0.01}`, cash: "0.01"},
		},
		out: []sample{
			{entry: `{"item_name":"fine silver","weight":500,"touch":99.5}`, fine: "497.5"},
			{entry: `{"item_name":"चाँदी","weight":10,"fine_weight":9.5}`, fine: "9.5"},
			{entry: `{"fine_weight":1,"amount":700.50}`, cash: "700.5", fine: "1"},
		},
	},
	"polisher": {
		in: []sample{
			{entry: `{"item_name":"payal","weight":98.5,"loss_weight":1.5,"pieces":12,"rate":5,"amount":60}`, cash: "60", fine: "100"},
			{entry: `{"loss_weight":0.25}`, fine: "0.25"},
			{entry: `{"description":"labour","amount":0.01}`, cash: "0.01"},
		},
		out: []sample{
			{entry: `{"item_name":"पायल","weight":100,"pieces":12,"description":"urgent"}`, fine: "100"},
			{entry: `{"weight":0.001,"amount":700.50}`, cash: "700.5", fine: "0.001"},
		},
	},
}
