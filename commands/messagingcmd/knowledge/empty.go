package knowledge

// empty has words without content, such as articles. Hindi and Gujarati words are also listed in Latin letters. Postgres
// has most of the English ones.
var empty = func() map[string]bool {
	all := map[string]bool{}
	for word := range terms(`
		क्या है हैं का की के को में से पर और या कैसे कब कहाँ कहां कौन कौनसा कितना कितने कितनी मैं मेरा मेरी मेरे आप आपका आपकी आपके हम हमारा ` +
		`तो भी ही यह ये वह वो इस उस
		कि जो कर करें करते करता करना सकते सकता सकती हूँ हूं हो होता होती होते होगा होगी था थी थे लिए ने एक कुछ मुझे बताइए बताओ बताएं कृपया जी ` +
		`क्यों किस किसी तक साथ
		दो दें देते देती लेते जाता जाती रहा रहे रही गया गई चाहिए वाला वाली वाले अगर
		શું છે છો છું નો ની નું ના ને માં થી પર અને કે કેવી રીતે ક્યારે ક્યાં કોણ કેટલા કેટલું કેટલી કેટલો હું મારું મારી મારો મારા તમે તમારા ` +
		`તમારી તમારું અમે અમારા તો પણ જ આ તે
		કરો કરે કરી કરવું શકો શકું શકાય હોય હતું હતી થાય થશે માટે એક કોઈ મને કહો કૃપા જો કઈ કયા કયું કેમ જેવી આપો આપે લો સાથે સુધી જોઈએ વાળા ` +
		`વાળી છતાં
		kya hai hain ka ki ke ko mein me se par aur ya kaise kab kahan kaun kitna kitne kitni main mera meri mere aap aapka aapki aapke hum ` +
		`toh bhi hi yeh ye woh wo
		kar karein karte karta karna sakte sakta sakti hu hoon ho hota hoti hote hoga hogi tha thi liye ne ek kuch mujhe bataiye batao please ` +
		`ji kyon kis tak sath
		do dete lete jata jati raha rahe rahi gaya gayi chahiye wala wali wale agar
		shu su che chhe cho chu no ni nu na ne ma thi ane kevi rite kyare kya kyaan kon ketla ketlu ketli hu maru mari maro mara tame tamara ` +
		`tamari tamaru ame amara aa te
		karo kare kari shako shakay hoy thay thashe mate koi mane kaho jo kai kem aapo ape sathe sudhi joie
		please tell want know need give show help get got let may many much mean means meaning say said hi hello hey dear sir madam mam ` +
		`thanks thank would could kindly list detail details
		info information like regarding namaste im whats hows currently exactly long take takes anything something us find look looking ` +
		`interested kitna kitane
		बता दीजिए दीजिये पूछना जानना चाहता चाहती सर मैडम नमस्ते नमस्कार कहिए तुम तुम्हारा तुम्हारे किन कहा
		કેટલાં જણાવો જણાવશો બતાવો આપશો સર મેડમ નમસ્તે શુ કયાં જાણવું છીએ
		काय आहे आहेत चा ची चे च्या ला किती केव्हा कुठे कसे कोण मला तुम्ही तुमचे तुमच्या आम्ही आहात सांगा द्या का आणि
		என்ன எவ்வளவு எப்போது எங்கே எங்கு எப்படி யார் எது எந்த ஏன் நான் நாங்கள் நீங்கள் உங்கள் எனக்கு உள்ளது உள்ளதா இருக்கிறது இருக்கிறதா ஒரு ` +
		`இந்த அந்த மற்றும் தயவுசெய்து சொல்லுங்கள் ஆகும் வேண்டும் க்கு
		ஐயா வணக்கம் எத்தனை இருக்கு
		ఏమిటి ఏంటి ఎంత ఎన్ని ఎప్పుడు ఎక్కడ ఎలా ఎవరు ఏది ఎందుకు నేను మేము మీరు మీ నాకు ఉంది ఉందా ఉన్నాయి ఒక ఈ ఆ మరియు దయచేసి చెప్పండి కావాలి ` +
		`అవుతుంది యొక్క లో కి కు నమస్తే
		ಏನು ಎಷ್ಟು ಯಾವಾಗ ಎಲ್ಲಿ ಹೇಗೆ ಯಾರು ಯಾವ ಏಕೆ ನಾನು ನಾವು ನೀವು ನಿಮ್ಮ ನನಗೆ ಇದೆ ಇದೆಯೇ ಇವೆ ಒಂದು ಈ ಆ ಮತ್ತು ದಯವಿಟ್ಟು ಹೇಳಿ ಬೇಕು ಆಗುತ್ತದೆ ನಮಸ್ಕಾರ
		എന്ത് എന്താണ് എത്ര എത്രയാണ് എപ്പോൾ എവിടെ എങ്ങനെ ആര് ഏത് എന്തുകൊണ്ട് ഞാൻ ഞങ്ങൾ നിങ്ങൾ നിങ്ങളുടെ എനിക്ക് ഉണ്ട് ഉണ്ടോ ആണ് ആണോ ഒരു ഈ ആ ` +
		`ദയവായി പറയൂ വേണം
		কি কী কত কখন কোথায় কিভাবে কীভাবে কে কোন কেন আমি আমরা আপনি আপনার আপনাদের আমার আমাকে আছে আছেন একটি একটা এই ওই এবং ও দয়া করে বলুন চাই ` +
		`হয় হবে এর র টি তে
		কিমান কেতিয়া ক'ত আছেনে
		ਕੀ ਕਿੰਨਾ ਕਿੰਨੀ ਕਿੰਨੇ ਕਦੋਂ ਕਿੱਥੇ ਕਿਵੇਂ ਕੌਣ ਕਿਹੜਾ ਕਿਹੜੀ ਕਿਉਂ ਮੈਂ ਅਸੀਂ ਤੁਸੀਂ ਤੁਹਾਡਾ ਤੁਹਾਡੀ ਤੁਹਾਡੇ ਮੈਨੂੰ ਹੈ ਹਨ ਦਾ ਦੀ ਦੇ ਨੂੰ ਵਿੱਚ ਤੋਂ ਤੇ ` +
		`ਇੱਕ ਇਹ ਉਹ ਅਤੇ ਕਿਰਪਾ ਕਰਕੇ ਦੱਸੋ ਚਾਹੀਦਾ ਹੁੰਦਾ ਜੀ
		କଣ କ'ଣ କେତେ କେବେ କେଉଁଠି କେଉଁଠାରେ କିପରି କିଏ କେଉଁ କାହିଁକି ମୁଁ ଆମେ ଆପଣ ଆପଣଙ୍କ ମୋତେ ଅଛି କି ଏକ ଏହି ସେହି ଏବଂ ଦୟାକରି କୁହନ୍ତୁ ଅଟେ ର ରେ କୁ ହେବ
		کیا ہے ہیں کا کی کے کو میں سے پر اور یا کیسے کب کہاں کون کونسا کتنا کتنی کتنے میرا میری آپ آپکا ہم تو بھی یہ وہ اس کر کریں کرتے ہو ` +
		`ہوتا ہوتی لیے نے ایک مجھے بتائیں براہ کرم جی کیوں چاہیے`) {
		all[word] = true
	}
	return all
}()
